"""The condition SpeedsMeasured: which speeds in the plans are estimates, and how good the estimates were."""

from synergy_api.base import Condition
from synergy_api.parts.progress import MeasuredSpeed
from synergy_api.reasons import Reason, say
from synergy_api.resources.training_job import TrainingJobStatus
from synergy_operator.conditions import SPEEDS, ConditionUpdate, find, no, yes

OFF, NO_LONGER_OFF = 0.25, 0.15
"""An estimate is off above the first relative error, until it is below the second.

The mean of the reports changes a little with each of them. With a single limit each change could be a write and an
event.
"""
_STEP = 5
"""The step, in percent, in which messages state errors. Like speeds with two digits, it avoids a write for
each report."""


def speeds_measured(status: TrainingJobStatus) -> ConditionUpdate | None:
    """The condition `SpeedsMeasured`; None if no speed of the job is or was estimated."""
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
    shown = find(status.conditions, SPEEDS)
    bound = NO_LONGER_OFF if shown is not None and shown.reason == Reason.ESTIMATE_OFF else OFF
    off = any(error > bound for _, error in checked)
    return yes(say(Reason.ESTIMATE_OFF if off else Reason.ESTIMATES_CHECKED, speeds=found))


def still_applies(condition: Condition, status: TrainingJobStatus) -> bool:
    """The condition may stay. `SpeedsMeasured` may not after the estimates are gone."""
    return condition.type != SPEEDS or bool(status.estimates or _checked(status))


def _checked(status: TrainingJobStatus) -> list[tuple[MeasuredSpeed, float]]:
    """Measured speeds of types that had an estimate, with the estimate's relative error."""
    return [(one, error) for one in status.measured_speeds if (error := one.error_of_estimate) is not None]
