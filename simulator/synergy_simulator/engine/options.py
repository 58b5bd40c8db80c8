"""How to simulate."""

from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Self

from synergy_core.model.config import PlanConfig
from synergy_core.model.names import nearest
from synergy_core.model.snapshot import Tenant
from synergy_simulator.engine.sharing.truth import Truth

AS_IN_PAPERS: Final = PlanConfig(policy="fifo", preemption_payback=0.0, explain=False)
"""How papers plan: no run is protected from preemption. Reasons are left out, as they are not read here."""
_OF_THE_PLANNER: Final = frozenset(one.name for one in fields(PlanConfig)) - {"mode"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to simulate."""

    plan: PlanConfig = AS_IN_PAPERS
    """How the planner plans. The simulator sets its `mode`, and adds the workload's measured pairs to `predictors`."""
    tenants: tuple[Tenant, ...] = ()
    """For `hierarchical`; one that is not named has weight 1 and fairness."""
    round_s: float = 300.0
    measure: tuple[int, int] | None = None
    """Window of jobs, in arrival order, that the metrics are about; None: all."""
    until_measured_done: bool = False
    """End when these jobs are done; other jobs keep coming until then."""
    start_overhead_s: float = 0.0
    """Seconds that a job holds its GPUs without a step when it begins for the first time."""
    preemption_overhead_s: float = 0.0
    """Seconds that a job holds its GPUs without a step each time it begins again."""
    storage_bytes_per_s: float | None = None
    """Bandwidth of the storage that checkpoints are written to and read from; each preemption takes both, in which the
    job holds GPUs without a step (`Task.checkpoint_bytes`). None: nothing beyond `preemption_overhead_s`."""
    measured_types: int | None = None
    """GPU types on which each job is measured before it runs, different ones for different models; on the others the
    planner goes by estimates, until the job ran there. None: all."""
    profiling_s: float = 0.0
    """Seconds of the profile run on its own GPUs that each job goes through before it is in line (section 3.1)."""
    fill: bool = True
    """Fill GPUs that fall free between rounds at once; else they stay idle until the round ends."""
    reuse_plans: bool = True
    """Pass over rounds in which nothing can change."""
    truth: Truth = field(default_factory=Truth)
    """What sharing really costs."""
    record: bool = False
    """Record where each job ran and when, for a report."""

    @classmethod
    def of(cls, plan: PlanConfig = AS_IN_PAPERS, **settings: Any) -> Self:
        """Options from settings of the simulator and of the planner, by the names of their fields.

        Raises:
            ValueError: a setting has neither's name; one line that lists the names.
        """
        own = {one.name for one in fields(cls)} - {"plan"}
        unknown = sorted(settings.keys() - own - _OF_THE_PLANNER)
        if unknown:
            known = sorted(own | _OF_THE_PLANNER)
            meant = nearest(unknown[0], known)
            suggestion = "" if meant is None else f"did you mean {meant!r}? "
            problem = f"is not a setting of a simulation; {suggestion}choose among {', '.join(known)}"
            raise ValueError(f"{unknown[0]}: {problem}")
        planned = {name: value for name, value in settings.items() if name not in own}
        simulated = {name: value for name, value in settings.items() if name in own}
        return cls(plan=replace(plan, **planned), **simulated)

    def preemption_cost_s(self, checkpoint_bytes: int) -> float:
        """Seconds that a preemption takes: to write the checkpoint, and to begin again with it."""
        bandwidth = self.storage_bytes_per_s
        moving_s = 2.0 * checkpoint_bytes / bandwidth if bandwidth is not None else 0.0
        return self.preemption_overhead_s + moving_s
