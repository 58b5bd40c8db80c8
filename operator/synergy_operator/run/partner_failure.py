"""Failures that a partner on the same GPU caused: an MPS server that one client brings down ends the others too.

The workers' end times, in whole seconds, show which one was first. If two end in the same second, neither is charged,
unless the same happened to the job's previous run.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from synergy_api.parts.allocation import Allocation
from synergy_api.parts.service import RunOutcome
from synergy_api.reasons import Reason, say
from synergy_operator.run.step import reason_of, reason_text
from synergy_operator.views.pod import PodView
from synergy_operator.views.worker_state import WorkerState, worker_state

SIMULTANEOUS_SECONDS: Final = 5.0
"""Ends that are further apart are unrelated."""
PARTNER_WAIT_SECONDS: Final = 3.0
"""How long the end of a partner may take to become known after a failure."""


@dataclass(frozen=True, slots=True)
class FailureAttribution:
    """The outcome of a failed run. `wait_s` is set while the operator has to wait for the partners' ends, in
    seconds."""

    outcome: RunOutcome
    wait_s: float | None = None


def partners_of(allocation: Allocation | None) -> frozenset[tuple[str, str]]:
    """Namespace and name of the jobs that share the run's GPU: those observed on it, otherwise those requested."""
    shared = allocation.shared_gpu if allocation is not None else None
    if shared is None:
        return frozenset()
    names = shared.asked if shared.seen is None else shared.seen
    found = (name.partition("/") for name in names)
    return frozenset((namespace, name) for namespace, _, name in found)


def attribute_failure(
    outcome: RunOutcome, pods: Iterable[PodView], partners: Iterable[PodView], last: RunOutcome | None, now: float
) -> FailureAttribution:
    """The outcome of a failed run with the partners taken into account.

    `partners` are the worker pods of the jobs on its GPU. `last` is the outcome of the job's previous run.
    """
    failed = [pod for pod in pods if worker_state(pod) is WorkerState.FAILED and pod.main.finished_at is not None]
    ends = [pod.main.finished_at for pod in failed if pod.main.finished_at is not None]
    if outcome.outcome != "Failed" or not ends:
        return FailureAttribution(outcome)
    end, nodes = min(ends), {pod.node for pod in failed}
    theirs = sorted(
        (pod.main.finished_at, pod.job)
        for pod in partners
        if worker_state(pod) is WorkerState.FAILED
        and pod.node in nodes
        and pod.main.finished_at is not None
        and abs(pod.main.finished_at - end) <= SIMULTANEOUS_SECONDS
    )
    if not theirs:
        wait = end + PARTNER_WAIT_SECONDS - now
        return FailureAttribution(outcome, wait) if wait > 0 else FailureAttribution(outcome)
    first, partner = theirs[0]
    again = last is not None and reason_of(last).reason is Reason.PARTNER_FAILED
    if first > end or (first == end and again):
        return FailureAttribution(outcome)
    pod = failed[0]
    facts = {"run": outcome.run, "rank": pod.rank, "exit_code": outcome.exit_code, "partner": partner}
    finding = say(Reason.PARTNER_FAILED, **facts)
    charged = {"outcome": "Evicted", "reason": reason_text(finding), "failed_on": []}
    return FailureAttribution(outcome.model_copy(update=charged))
