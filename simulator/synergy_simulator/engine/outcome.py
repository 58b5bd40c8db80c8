"""What came of a simulation."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

from synergy_simulator.engine.options import Options
from synergy_simulator.engine.run import Run
from synergy_simulator.engine.usage import Usage
from synergy_simulator.workloads.workload import Workload


@dataclass(frozen=True, slots=True)
class Segment:
    """A job on a node from one moment to another."""

    job: str
    node: str
    gpus: int
    start: float
    end: float


@dataclass(slots=True)
class Outcome:
    """What came of it. `runs` are all jobs that arrived, in the order of arrival."""

    workload: Workload
    options: Options
    runs: list[Run]
    contention_s: dict[str, tuple[float, float]]
    """By job: the integral of contention (`Usage`) at its arrival and at its end."""
    usage: Usage
    segments: list[Segment]
    plan_s: list[float]
    """Seconds of each call of the planner."""
    wall_s: float
    first_s: float
    """When the first job arrived."""
    estimate_errors: Sequence[float] = ()
    """How far each estimate was off that a job ran by, relative to its real speed."""

    @property
    def rounds(self) -> int:
        """Rounds that began, planned or passed over."""
        round_s = self.options.round_s
        return max(1, ceil(self.usage.until / round_s) - floor(self.first_s / round_s))
