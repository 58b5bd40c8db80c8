"""Whether the speeds that plans go by were all measured: what is estimated, and how good the estimates turned out."""

from synergy_api.base import Condition
from synergy_api.progress import MeasuredSpeed
from synergy_api.reasons import Reason, say
from synergy_api.training_job import TrainingJobStatus
from synergy_operator.conditions import SPEEDS, Verdict, find, no, yes

OFF, NO_LONGER_OFF = 0.25, 0.15
"""An estimate that was further off, relative to what was measured, is worth an event; it is off until it is below the
second: the mean of the reports moves a little with each of them, and each change would be a write and an event."""
_STEP = 5
"""Percent in which it is said how far an estimate was off, and speeds are said in two digits: for the same reason."""


def speeds_measured(status: TrainingJobStatus) -> Verdict | None:
    """The condition `SpeedsMeasured`; None where no speed of the job is or was estimated."""
    if status.estimates:
        found = ", ".join(f"{one.gpu_type} {one.steps_per_second:.3g}" for one in status.estimates)
        return no(say(Reason.SPEEDS_ESTIMATED, speeds=found))
    checked = _checked(status)
    if not checked:
        return None
    found = ", ".join(
        f"{one.gpu_type} {one.steps_per_second:.2g} ({_STEP * round(100 * error / _STEP)}% off what was estimated)"
        for one, error in checked
    )
    said = find(status.conditions, SPEEDS)
    bound = NO_LONGER_OFF if said is not None and said.reason == Reason.ESTIMATE_OFF else OFF
    off = any(error > bound for _, error in checked)
    return yes(say(Reason.ESTIMATE_OFF if off else Reason.ESTIMATES_CHECKED, speeds=found))


def still_said(condition: Condition, status: TrainingJobStatus) -> bool:
    """Whether a condition may stay: that of estimates that are gone may not."""
    return condition.type != SPEEDS or bool(status.estimates or _checked(status))


def _checked(status: TrainingJobStatus) -> list[tuple[MeasuredSpeed, float]]:
    """What was measured where it had been estimated, and how far the estimate was off."""
    return [(one, error) for one in status.measured_speeds if (error := one.error_of_estimate) is not None]
