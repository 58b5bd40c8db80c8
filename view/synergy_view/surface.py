"""A job's sensitivity surface on one GPU type, ready to be drawn: speed over CPU, and over CPU and memory."""

from collections.abc import Iterable
from dataclasses import dataclass

from synergy_api.parts.profile import SensitivityMatrix
from synergy_view.seen import SeenJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """Speeds in steps per second of the whole job. CPU in milli-CPU, memory in bytes, of the whole job."""

    gpu_type: str
    cpu_millis: tuple[int, ...]
    memory_bytes: tuple[int, ...]
    steps_per_s: tuple[tuple[float, ...], ...]
    """A row for each CPU point, a column for each memory point."""
    demand: tuple[int, int] | None
    """The smallest CPU and memory that saturate the job (Synergy, section 3.2); None where not known."""
    given: tuple[int, int] | None
    """CPU and memory that the job holds now, if it runs on this type."""
    confidence: str
    """High, Fair or Low; empty where nothing was measured."""
    uncertainty: float | None
    """Half the widest 95 % confidence interval, relative."""
    runs: int
    measured: tuple[int, ...]
    """The CPU points that profile runs measured; the others follow from the model."""

    @property
    def best(self) -> float:
        """The highest speed of all points."""
        return max(max(row) for row in self.steps_per_s)


def surfaces(job: SeenJob) -> list[Surface]:
    """The surfaces of a job, one for each GPU type: those that were measured, else those that its spec provides."""
    profile = job.status.profile
    matrices: Iterable[SensitivityMatrix] = profile.matrices if profile is not None and profile.matrices else ()
    return [_surface(job, matrix) for matrix in matrices or job.spec.profile.matrices]


def _surface(job: SeenJob, matrix: SensitivityMatrix) -> Surface:
    profile, allocation = job.status.profile, job.status.allocation
    demand = confidence = None
    measured: tuple[int, ...] = ()
    if profile is not None:
        demand = next((one for one in profile.demand if one.gpu_type == matrix.gpu_type), None)
        confidence = next((one for one in profile.confidence if one.gpu_type == matrix.gpu_type), None)
        points = {point.cpu_millis for point in profile.points if point.gpu_type == matrix.gpu_type}
        measured = tuple(sorted(points))
    given = None
    if allocation is not None and job.gpu_type == matrix.gpu_type:
        workers = allocation.workers
        given = sum(one.cpu_millis for one in workers), sum(one.memory_bytes for one in workers)
    return Surface(
        gpu_type=matrix.gpu_type,
        cpu_millis=tuple(matrix.cpu_millis),
        memory_bytes=tuple(matrix.memory_bytes),
        steps_per_s=tuple(tuple(row) for row in matrix.steps_per_second),
        demand=(demand.cpu_millis, demand.memory_bytes) if demand is not None else None,
        given=given,
        confidence=confidence.level if confidence is not None else "",
        uncertainty=confidence.uncertainty if confidence is not None else None,
        runs=confidence.runs if confidence is not None else 0,
        measured=measured,
    )
