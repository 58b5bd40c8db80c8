"""The end of an open training run: record its outcome, delete its pods, close its accounting."""

from collections.abc import Iterable
from typing import Final

from synergy_api.parts.service import RunOutcome
from synergy_api.reasons import Finding
from synergy_api.timestamps import parse_time
from synergy_operator.actions import DeletePod
from synergy_operator.conditions import no
from synergy_operator.run.end import close_run, ended_at, held_back, left_unsaved, not_before
from synergy_operator.run.fencing import fenced_at, unseen_until, waiting_for
from synergy_operator.run.forgiveness import forgiven, noted_failure
from synergy_operator.run.open_run import OpenRun
from synergy_operator.run.outcome import killed_before_checkpoint, with_reported_step
from synergy_operator.run.step import RunStep, earliest, reason_of, reason_text
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView

FORCE_SECONDS: Final = 30.0
"""How long the operator waits for a pod on a lost node after the pod's grace period."""
WORD_SECONDS: Final = 30.0
"""How long, from the end of a vanished pod's grace period, its node may take to report again."""
ENDING_SECONDS: Final = 10.0
"""How long a pod may take to end after its training has ended. Sidecars may continue."""
EVICTED: Final = "Evicted"


def end_run(run: OpenRun, outcome: str, finding: Finding, failed_on: str = "") -> RunStep:
    """The first step of the end of a run, for this reason. `failed_on` is the node that could not start it."""
    return take_down(run, run_outcome(run, outcome, finding, failed_on))


def run_outcome(run: OpenRun, outcome: str, finding: Finding, failed_on: str = "") -> RunOutcome:
    """The outcome of a run, for this reason."""
    nodes = [failed_on] if failed_on else []
    found = {"run": run.number, "outcome": outcome, "reason": reason_text(finding), "failed_on": nodes}
    return RunOutcome.model_validate(found)


def take_down(run: OpenRun, outcome: RunOutcome) -> RunStep:
    """The next step towards the end of a run with this outcome.

    The accounting is closed once no pod of the run holds resources. Until then the outcome is recorded and the pods are
    deleted.
    """
    outcome = _final_outcome(run, with_reported_step(outcome, (*run.pods, *run.deleted_pods)))
    observed, fence_s = run.observed, run.observed.settings.fence_seconds
    running = no(reason_of(outcome))
    holding = [pod for pod in run.pods if not pod.terminal]
    ending = [pod for pod in holding if _ends_by_itself(pod, run.now)]
    accounting = run.service.model_copy(update={"last": outcome})
    if not holding:
        wait = _word_in(run)
        return closed(run, outcome) if wait is None else RunStep("Leaving", accounting, running, requeue_after=wait)
    deletions, wait = pod_deletions(
        (pod for pod in holding if pod not in ending), observed, run.now, fence_seconds=fence_s
    )
    unfenced = waiting_for(holding, observed.cluster, fence_s, run.now)
    running = running if unfenced is None else no(unfenced)
    again = earliest(wait, ENDING_SECONDS if ending else None)
    return RunStep("Leaving", accounting, running, after=deletions, requeue_after=again)


def closed(run: OpenRun, outcome: RunOutcome) -> RunStep:
    """The last step of a run, of which no pod holds resources."""
    ended = ended_at(run.pods, run.now) if run.pods else run.now
    progress = run.observed.job.status.progress
    service = forgiven(run.service, run.number, progress, ended)
    accounting = close_run(service, run.allocation, outcome, ended=ended, gpus=run.spec.gpus, now=run.now)
    if left_unsaved(run.allocation, outcome, progress):
        accounting = held_back(accounting, run.service.refusals, run.now)
    accounting = noted_failure(accounting, outcome, progress, ended)
    unseen = _unseen_until(run)
    if unseen is not None:
        accounting = not_before(accounting, unseen)
    return RunStep("Closed", accounting, no(reason_of(outcome)), started=run.service.running_since)


def _unseen_until(run: OpenRun) -> float | None:
    """The earliest start of the next run if a worker of this one may still train unseen; None otherwise."""
    if run.service.run < run.number:
        return None  # none of its workers ever started
    known, settings = (*run.deleted_pods, *run.pods), run.observed.settings
    return unseen_until(run.gang, known, run.observed.cluster, settings.fence_seconds, run.now)


def _word_in(run: OpenRun) -> float | None:
    """For how many seconds to wait for word from the node of a worker that has vanished; None for no wait.

    A node that is back removes its deleted pods, which may be seen before its own report.
    """
    moments = [pod.deleting_until for pod in run.observed.vanished_pods(run.number) if pod.deleting_until is not None]
    if not moments or _unseen_until(run) is None:
        return None
    wait = max(moments) + WORD_SECONDS - run.now
    return wait if 0.0 < wait <= 2 * WORD_SECONDS else None


def _final_outcome(run: OpenRun, outcome: RunOutcome) -> RunOutcome:
    """The outcome once no pod runs: a job with the library that was killed before its checkpoint has lost steps."""
    progress, lease = run.observed.job.status.progress, run.allocation.lease_until
    if progress is None or progress.run != run.number or run.spec.throughput is not None:
        return outcome
    if any(not pod.terminal for pod in run.pods) or run.spec.preemption != "Checkpoint" or not lease:
        return outcome
    return killed_before_checkpoint(outcome, (*run.pods, *run.deleted_pods), progress, run.now - parse_time(lease))


def _ends_by_itself(pod: PodView, now: float) -> bool:
    """The pod's training has just ended, and so will the pod. It is not deleted, which keeps its log readable."""
    ended = pod.main.finished_at
    return ended is not None and pod.deleting_until is None and now < ended + ENDING_SECONDS


def pod_deletions(
    pods: Iterable[PodView], observed: Observed, now: float, *, fence_seconds: float | None = None
) -> tuple[tuple[DeletePod, ...], float | None]:
    """The deletions of these pods, and the seconds until the next reconcile.

    A pod gets the grace period of its template, but no more than the administrator allows for a checkpoint.

    A pod on a lost node, whose kubelet cannot confirm its end, is deleted for good some time after its grace period.
    With `fence_seconds` it must also be fenced, because it may still write checkpoints.
    """
    deletions: list[DeletePod] = []
    waits: list[float] = []
    most = observed.cluster.max_checkpoint_seconds
    for pod in pods:
        if pod.deleting_until is None:
            deletions.append(DeletePod(pod.name, pod.uid, most if pod.grace_seconds > most else None))
        elif pod.node and observed.cluster.lost(pod.node):
            fence = fenced_at(pod, observed.cluster, fence_seconds) if fence_seconds is not None else None
            wait = max(pod.deleting_until + FORCE_SECONDS, fence or 0.0) - now
            if wait <= 0:
                deletions.append(DeletePod(pod.name, pod.uid, grace_seconds=0))
            else:
                waits.append(wait)
    return tuple(deletions), earliest(*waits)
