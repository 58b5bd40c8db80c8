"""How to simulate."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from synergy_core.colocation.measurement import Predictor
from synergy_core.config import ColocationMode, PriorityQueues
from synergy_core.model import Tenant
from synergy_simulator.engine.sharing import Truth


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to simulate."""

    policy: str = "fifo"
    mechanism: str = "tune"
    queues: PriorityQueues = field(default_factory=PriorityQueues)
    """For the policies with discretised queues."""
    tenants: tuple[Tenant, ...] = ()
    """For `hierarchical`; one that is not named has weight 1 and fairness."""
    aware: bool = True
    """Whether policies over several GPU types see that they differ in speed."""
    placement_sensitive: bool = False
    """Whether they see what jobs keep of their speed when they lie spread."""
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
    link_bytes_per_s: float | None = None
    """Bandwidth of a node's link, which the planner knows: what jobs lose by it on many nodes whose trace does not tell
    (`Task.model_bytes`). None: nothing."""
    minimum_run_s: float = 0.0
    preemption_payback: float = 0.0
    """As in `PlanConfig`."""
    pack_limit: float | None = None
    """As in `PlanConfig`: jobs with a larger skew are packed, others spread."""
    measured_types: int | None = None
    """GPU types on which each job is measured before it runs, different ones for different models; on the others the
    planner goes by estimates, until the job ran there. None: all."""
    profiling_s: float = 0.0
    """Seconds of the profile run on its own GPUs that each job goes through before it is in line (section 3.1)."""
    fill: bool = True
    """Fill GPUs that fall free between rounds at once; else they stay idle until the round ends."""
    reuse_plans: bool = True
    """Pass over rounds in which nothing can change."""
    colocation: ColocationMode = "none"
    """Who shares a GPU."""
    predictors: Mapping[str, Predictor] = field(default_factory=dict)
    """What the planner predicts of sharing, by GPU type; others: the generic ones."""
    truth: Truth = field(default_factory=Truth)
    """What sharing really costs."""
    record: bool = False
    """Keep who was where when, for a report."""
