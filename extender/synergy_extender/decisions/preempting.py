"""What is recorded of a run that a plan ends, and when the run must leave. Pure."""

from collections.abc import Sequence

from synergy_api.parts.allocation import Allocation
from synergy_api.parts.waiting import PreemptionRecord, kept
from synergy_api.timestamps import format_time
from synergy_core.explain.preemptions import Preemption, PreemptionRule
from synergy_extender.rounds import Moment


def leaves_at(moment: Moment, allocation: Allocation, *, at_once: bool) -> float:
    """Until when the run may stay, Unix time: to the round's end, or `at_once` for the notice of a lease.

    A plan that comes late leaves time to hear of it.
    """
    if not allocation.admitted:
        return moment.now
    if at_once:
        return moment.now + moment.rounds.lead_s
    return max(moment.rounds.start(moment.round_index), moment.now + moment.rounds.lead_s / 2)


def recorded(
    before: Sequence[PreemptionRecord], allocation: Allocation, found: Preemption | None, namespace: str, now: float
) -> list[PreemptionRecord]:
    """The job's preemptions with this one. Profile runs, and runs whose GPUs never came free, are none.

    Jobs of other namespaces are not named: who may read this job may not read those.
    """
    if found is None or allocation.purpose != "Train" or not allocation.admitted:
        return list(before)
    own = [name for name in found.by if name.startswith(f"{namespace}/")]
    record = PreemptionRecord(at=format_time(now), run=allocation.run, rule=found.rule.value, by=own)
    return kept(list(before), record)


def at_once(found: Preemption | None) -> bool:
    """Whether the run ends before the round does."""
    return found is not None and found.rule is PreemptionRule.URGENT
