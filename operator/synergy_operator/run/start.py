"""The start of a training run: create its pods, and remove their gates once their resources are free."""

from collections.abc import Iterable

from synergy_api.devices import device_class
from synergy_api.names import GATE, LABEL_JOB
from synergy_api.parts.service import RunOutcome
from synergy_api.reasons import Finding, Reason, say
from synergy_operator.actions import Action, CreatePod, EnsureClaim, EnsureGangKey, EnsureService, UngatePod
from synergy_operator.conditions import no
from synergy_operator.pods.claim import claim
from synergy_operator.pods.gang import gang_secret, headless_service, worker_pod
from synergy_operator.pods.share import too_small
from synergy_operator.run.open_run import OpenRun
from synergy_operator.run.start_blocker import start_blocker
from synergy_operator.run.step import RunStep, finding_of
from synergy_operator.run.take_down import EVICTED, end_run, run_outcome, take_down
from synergy_operator.views.pod import PodView
from synergy_operator.views.worker_state import WorkerState, worker_state


def start(run: OpenRun) -> RunStep:
    """The next step of a run whose pods are not all created."""
    if run.allocation.state != "Granted" or not run.wanted:
        return end_unstarted(run)
    refusal = refused_end(run)
    if refusal is not None:
        return refusal
    small = _too_small(run)
    if small is not None:
        return end_run(run, "Failed", small)
    waits = _waits_before_pods(run)
    if waits is not None:
        return RunStep("Starting", run.service, no(waits))
    names = {pod.name for pod in run.pods}
    missing = [worker for worker in run.gang if worker.name not in names]
    if not missing:
        return RunStep("Starting", run.service.model_copy(update={"run": run.number}), no(starting(run)))
    job, size = run.observed.job, len(run.gang)
    settings, most = run.observed.settings, run.observed.cluster.max_checkpoint_seconds
    pods = (
        worker_pod(job, run.spec, run.number, worker, size=size, settings=settings, most_grace_seconds=most)
        for worker in missing
    )
    # a Service and its endpoints are five writes of the control plane, which a single process has no use for
    of_gang = (EnsureService(headless_service(job)), EnsureGangKey(gang_secret(job))) if run.spec.has_gang else ()
    before: tuple[Action, ...] = (
        *of_gang,
        *(CreatePod(run.number, pod) for pod in pods),
    )
    return RunStep("Starting", run.service, no(starting(run)), before=before, unwritten=True)


def _waits_before_pods(run: OpenRun) -> Finding | None:
    """Why the run may not have pods yet: the hub cluster has not fixed the job to this one, or pods of the last run
    are still there."""
    if run.observed.job.waits_for_hub:
        return say(Reason.WAITING_FOR_HUB, run=run.number)
    leaving = any(pod.run < run.number and not pod.terminal for pod in run.observed.pods)
    return say(Reason.WAITING_FOR_ROOM, run=run.number) if leaving else None


def before_binding(run: OpenRun, gated: Iterable[PodView]) -> tuple[Action, ...]:
    """What to do while gates hold the pods: first resizes, then removal of the gates once the extender has admitted the
    run.

    The plan may still change the sizes of an allocation that is not admitted. A worker of an outdated size might not
    fit.
    """
    if run.sizes.actions or not run.allocation.admitted:
        return run.sizes.actions
    waiting = list(gated)
    return (*_claims(run, waiting), *(ungate(pod, run.now) for pod in waiting))


def _claims(run: OpenRun, pods: Iterable[PodView]) -> Iterable[Action]:
    """The claims of pods whose GPUs are devices of DRA. Which devices is known from admission on."""
    shares = {worker.name: worker.share for worker in run.gang}
    for pod in pods:
        share = shares.get(pod.name)
        if share is not None and device_class(share.resource) is not None:
            yield EnsureClaim(pod.name, pod.uid, claim(pod.name, {LABEL_JOB: run.observed.job.name}, share))


def refused_end(run: OpenRun) -> RunStep | None:
    """The end of a run that the API server refused to let start; None if it did not."""
    outcome = refused(run)
    return None if outcome is None else take_down(run, outcome)


def refused(run: OpenRun) -> RunOutcome | None:
    """The outcome of a run that the API server refused to let start; None if it did not."""
    refusals = run.observed.refusals
    if refusals.run != run.number:
        return None
    outcome = "Failed" if refusals.invalid else EVICTED
    return run_outcome(run, outcome, say(refusals.reason, run=run.number, problem=refusals.message))


def end_unstarted(run: OpenRun) -> RunStep:
    """The end of a run without any bound pod."""
    return take_down(run, unstarted(run))


def unstarted(run: OpenRun) -> RunOutcome:
    """The outcome of a run without any bound pod. If the extender revoked it for that, the next try is delayed."""
    finding = finding_of(run.allocation.reason) if run.allocation.state == "Revoked" else None
    if finding is not None and finding.reason is Reason.PODS_NOT_STARTED:
        return run_outcome(run, EVICTED, finding)
    return run_outcome(run, "Yielded", say(Reason.NOT_STARTED, run=run.number))


def _too_small(run: OpenRun) -> Finding | None:
    found = (too_small(run.spec.template, worker.share.amounts) for worker in run.gang)
    return next((finding for finding in found if finding is not None), None)


def starting(run: OpenRun) -> Finding:
    """The finding of a run that has not started to train."""
    if not run.allocation.admitted:
        return say(Reason.WAITING_FOR_ROOM, run=run.number)
    for pod in run.pods:
        blocker = start_blocker(pod, run.observed)
        if blocker is not None:
            return blocker
    running = sum(worker_state(pod) is WorkerState.RUNNING for pod in run.pods)
    return say(Reason.WORKERS_STARTING, run=run.number, running=running, workers=len(run.gang))


def ungate(pod: PodView, now: float) -> UngatePod:
    """Let the pod go to its node."""
    return UngatePod(pod.name, pod.uid, tuple(gate for gate in pod.gates if gate != GATE), now)
