"""Throughputs on GPU types that a job has no matrix for, as they are measured while it runs there. Pure."""

from collections.abc import Mapping

from synergy_api.parts.allocation import Allocation
from synergy_api.parts.progress import MeasuredSpeed
from synergy_core.model.snapshot import FASTEST, SLOWEST
from synergy_extender.cluster.placements import REMEMBERED
from synergy_extender.cluster.views import JobView

MOST = 16
"""GPU types that are kept."""
_DIGITS = 3
"""The precision of measured throughputs in plans: with more, each report would change the plan."""


def measured_after(job: JobView, run: int, steps_per_s: float) -> list[MeasuredSpeed]:
    """The measured throughputs once the run has reported: of each GPU type the mean of its reports.

    What was measured under another fingerprint is dropped: it was of another image, command or batch size. Nothing is
    measured on a type with a matrix, or while the plan has others on its GPU: what it has on a whole GPU beside its
    share is what plans ask for. A job that has run on more types than are kept forgets the oldest.
    """
    allocation, before = job.status.allocation, job.status.measured_speeds
    if allocation is None or allocation.run != run or not allocation.workers or allocation.purpose != "Train":
        return before
    shared = allocation.shared_gpu
    if allocation.gpu_type in job.profiles or (shared is not None and (shared.asked or shared.seen)):
        return before
    if not SLOWEST < steps_per_s <= FASTEST:
        return before
    known = next((one for one in before if one.gpu_type == allocation.gpu_type), None)
    reports = 0 if known is None else min(known.reports, REMEMBERED - 1)
    mean = 0.0 if known is None else known.steps_per_second
    now = MeasuredSpeed(
        gpu_type=allocation.gpu_type,
        steps_per_second=mean + (steps_per_s - mean) / (reports + 1),
        reports=reports + 1,
        estimated_steps_per_second=_estimate(allocation, known),
        fingerprint=job.status.fingerprint,
    )
    return [*(one for one in before if one is not known), now][-MOST:]


def _estimate(allocation: Allocation, known: MeasuredSpeed | None) -> float | None:
    """What the plan goes by that sent it there; once that is the measurement, what it went by before."""
    if allocation.estimated and allocation.steps_per_second > 0.0:
        return allocation.steps_per_second
    return None if known is None else known.estimated_steps_per_second


def measured_speeds(job: JobView) -> Mapping[str, float]:
    """What plans go by on GPU types without a matrix, as soon as there are reports enough."""
    return {
        one.gpu_type: float(f"{one.steps_per_second:.{_DIGITS}g}")
        for one in job.status.measured_speeds
        if one.gpu_type not in job.profiles and one.is_known
    }


def errors_of_estimates(job: JobView) -> list[float]:
    """How far the job's estimates were off, of each GPU type where that is known."""
    errors = (one.error_of_estimate for one in job.status.measured_speeds)
    return [error for error in errors if error is not None]
