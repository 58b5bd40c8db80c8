"""Whether a job will be done by its deadline. The planner's own words are in `synergy_core.model.deadlines`."""

from typing import Final

from synergy_api.reasons.entry import Entry, ReasonPlace
from synergy_api.reasons.words import Reason
from synergy_core.model.deadlines import LATE_MESSAGES, LateReason

_ON_TIME: Final = (ReasonPlace.ON_TIME,)

DEADLINES: Final[dict[Reason, Entry]] = {
    Reason.DEADLINE_AHEAD: Entry(
        _ON_TIME,
        "nothing known speaks against its being done by spec.slo.deadline",
        means="No promise: only the policy min-cost-slo plans by deadlines.",
    ),
    Reason.DEADLINE_KEPT: Entry(_ON_TIME, "it was done by spec.slo.deadline"),
    Reason.DEADLINE_MISSED: Entry(
        _ON_TIME,
        "it was done after spec.slo.deadline",
        means="This job needs no change; earlier conditions of its kind say why it was late.",
        event="Warning",
    ),
    **{
        Reason(late.value): Entry(
            _ON_TIME,
            LATE_MESSAGES[late],
            means="The job is still planned and runs.",
            event="Warning",
        )
        for late in LateReason
    },
}
