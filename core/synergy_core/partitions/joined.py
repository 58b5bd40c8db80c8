"""Puts the plans of parts together."""

from collections.abc import Mapping, Sequence
from operator import attrgetter

from synergy_core.explain.waiting import waiting
from synergy_core.model.answer import Displaced, Plan, Waiting
from synergy_core.model.reasons import Reason
from synergy_core.model.snapshot import Job

_FOR_GPUS = frozenset(
    {
        Reason.NO_FREE_GPU,
        Reason.NO_FREE_NODE,
        Reason.WOULD_BE_SPREAD,
        Reason.KEPT_FREE,
        Reason.NO_FREE_CPU_OR_MEMORY,
    }
)
"""Why a job waits that does not run; one that ran has yielded."""


def joined(plans: Sequence[Plan], order: Mapping[str, int], left: Mapping[str, Job]) -> Plan:
    """One plan. `order` is the position of each job in the queue; `left` are running jobs that were planned as waiting
    ones on another GPU type. `displaced` is in order within each part."""
    by_job = attrgetter("job")
    placed = _in_order([plan.waiting for plan in plans], order)
    return Plan(
        allocations=tuple(sorted([one for plan in plans for one in plan.allocations], key=by_job)),
        waiting=tuple([_of_runner(one, left[one.job]) if one.job in left else one for one in placed]),
        preempted=tuple(sorted([*left, *(name for plan in plans for name in plan.preempted)])),
        resized=tuple(sorted([name for plan in plans for name in plan.resized])),
        policy=plans[0].policy,
        mechanism=plans[0].mechanism,
        promoted=tuple(sorted([name for plan in plans for name in plan.promoted])),
        late=tuple(sorted([one for plan in plans for one in plan.late], key=by_job)),
        gave_way=tuple(sorted([one for plan in plans for one in plan.gave_way], key=by_job)),
        displaced=(
            *(one for plan in plans for one in plan.displaced),
            *(Displaced(name, "order") for name in sorted(left)),
        ),
    )


def _of_runner(entry: Waiting, job: Job) -> Waiting:
    return waiting(job, Reason.YIELDED) if entry.reason in _FOR_GPUS else entry


def _in_order(parts: Sequence[Sequence[Waiting]], order: Mapping[str, int]) -> list[Waiting]:
    """Jobs in the order of the queue; those that their quotas shut out, which are last in each part, last."""
    placed: list[Waiting] = []
    rest: list[Waiting] = []
    for one in parts:
        ranks = [order[entry.job] for entry in one]
        end = next((at for at in range(1, len(ranks)) if ranks[at] < ranks[at - 1]), len(ranks))
        placed += one[:end]
        rest += one[end:]
    placed.sort(key=lambda entry: order[entry.job])
    return placed + rest
