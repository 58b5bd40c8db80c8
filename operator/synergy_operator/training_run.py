"""One step of an open training run: make its pods, let them start together, keep them as planned, see how it ends.

Every decision is taken from what is there, never from what happened before, except one: that the run is to end. It is
recorded (`service.last`) before any pod is deleted, because the deletions themselves change what there is to see.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from synergy_api.allocation import Allocation
from synergy_api.leaving import leave_seconds
from synergy_api.names import GATE
from synergy_api.reasons import Finding, Reason, say
from synergy_api.sizes import SizeLimits
from synergy_api.timestamps import format_time, parse_time
from synergy_api.training_job import RunOutcome, ServiceStatus, TrainingJobSpec
from synergy_operator.actions import Action, ConfirmUnbound, CreatePod, DeletePod, EnsureService, UngatePod
from synergy_operator.conditions import RESOURCES, no, yes
from synergy_operator.fencing import fenced_at, unseen_until, waiting_for
from synergy_operator.forgiveness import forgiven, noted_failure
from synergy_operator.gang import Member, headless_service, members, worker_pod
from synergy_operator.half_bound import half_bound, hold_up, ungated_at
from synergy_operator.hindrance import cannot_start, hindrance, questions
from synergy_operator.observed import Observed
from synergy_operator.partner_failure import judged
from synergy_operator.resize import Resizing, resizes
from synergy_operator.run_end import close, ended_at, not_before, started_at
from synergy_operator.run_outcome import killed_before_its_checkpoint, natural_end, outcome_at_step, straggler_wait
from synergy_operator.run_step import RunStep, decided, finding_of, reason_of, reason_text, sooner
from synergy_operator.share import too_small
from synergy_operator.size_limits import learn, next_lesson
from synergy_operator.views import PodView
from synergy_operator.worker_state import WorkerState, worker_state

START_SECONDS: Final = 120.0
"""How long a bound worker may be unable to start (image, volume, configuration) before the run has failed."""
CREATE_SECONDS: Final = 900.0
"""How long the kubelet may take to bring up a bound worker's containers (large images, volumes) before the run has
failed."""
FORCE_SECONDS: Final = 30.0
"""How long after its grace period a pod on a lost node is waited for."""
ENDING_SECONDS: Final = 10.0
"""How long a pod whose training has ended may take to end as well (sidecars go on)."""
EVICTED: Final = "Evicted"


@dataclass(frozen=True)
class _Run:
    observed: Observed
    spec: TrainingJobSpec
    allocation: Allocation
    now: float
    wanted: bool

    @property
    def number(self) -> int:
        return self.allocation.run

    @cached_property
    def pods(self) -> tuple[PodView, ...]:
        return self.observed.pods_of(self.number)

    @cached_property
    def departed(self) -> tuple[PodView, ...]:
        return self.observed.departed(self.number)

    @cached_property
    def gang(self) -> tuple[Member, ...]:
        return members(self.observed.job.name, self.allocation, self.spec.gpus_per_worker)

    @cached_property
    def size_limits(self) -> SizeLimits | None:
        """What its workers can be resized to."""
        return learn(self.observed, self.gang, self.pods, self.now, run=self.number, gpus=self.spec.gpus)

    @cached_property
    def sizes(self) -> Resizing:
        """What brings its workers to the planned sizes."""
        return resizes(self.gang, self.pods, self.size_limits, self.spec.gpus)

    @cached_property
    def service(self) -> ServiceStatus:
        """The books, with the run's start once its workers show it."""
        books = self.observed.job.status.service or ServiceStatus()
        if books.running_since is not None or books.run != self.number:
            return books
        since = started_at(self.pods, len(self.gang))
        if since is None:
            return books
        update = {"running_since": format_time(since), "running_gpu_type": self.allocation.gpu_type}
        return books.model_copy(update=update)


def follow(observed: Observed, spec: TrainingJobSpec, allocation: Allocation, now: float, *, wanted: bool) -> RunStep:
    """The next step of the open run. `wanted` is false when the job must not start (suspended, finished, not valid)."""
    run = _Run(observed, spec, allocation, now, wanted)
    outcome = decided(run.service, run.number)
    if outcome is not None:
        return _take_down(run, outcome)
    if not run.gang and not run.pods:
        return _end(run, "Yielded", say(Reason.NOT_STARTED, run=run.number))
    return _start(run) if run.service.run < run.number else _watch(run)


def _start(run: _Run) -> RunStep:
    if run.allocation.state != "Granted" or not run.wanted:
        return _never_started(run)
    refused = _refused(run)
    if refused is not None:
        return refused
    small = _too_small(run)
    if small is not None:
        return _end(run, "Failed", small)
    if any(pod.run < run.number and not pod.terminal for pod in run.observed.pods):
        return RunStep("Starting", run.service, no(say(Reason.WAITING_FOR_ROOM, run=run.number)))
    names = {pod.name for pod in run.pods}
    missing = [member for member in run.gang if member.name not in names]
    if not missing:
        return RunStep("Starting", run.service.model_copy(update={"run": run.number}), no(_starting(run)))
    job, size = run.observed.job, len(run.gang)
    pods = (
        worker_pod(job, run.spec, run.number, member, size=size, settings=run.observed.settings) for member in missing
    )
    before: tuple[Action, ...] = (EnsureService(headless_service(job)), *(CreatePod(run.number, pod) for pod in pods))
    return RunStep("Starting", run.service, no(_starting(run)), before=before, unwritten=True)


def _watch(run: _Run) -> RunStep:
    outcome = natural_end(run.number, run.gang, run.pods, run.observed.cluster, run.now)
    if outcome is not None:
        return _ended(run, outcome)
    if run.allocation.state != "Granted":
        return _leave(run)
    if not run.wanted and all(pod.gated for pod in run.pods):
        return _never_started(run)
    gated = [pod for pod in run.pods if pod.gated]
    refused = _refused(run) if gated else None
    if refused is not None:
        return refused
    if gated:
        after = _before_binding(run, gated)
        return RunStep("Starting", run.service, no(_starting(run)), after=after, size_limits=run.size_limits)
    return _bring_up(run)


def _ended(run: _Run, outcome: RunOutcome) -> RunStep:
    """Beside partners on its GPU a run that failed may have been taken down by one of them: that is learned first."""
    shared = run.allocation.shared_gpu
    if shared is None or not (shared.asked or shared.seen):
        return _take_down(run, outcome)
    found = judged(outcome, run.pods, run.observed.partners, run.service.last, run.now)
    if found.wait_s is None:
        return _take_down(run, found.outcome)
    facts = {"workers": len(run.gang), "gpu_type": run.allocation.gpu_type}
    running = yes(say(Reason.WORKERS_RUNNING, run=run.number, **facts))
    return RunStep("Running", run.service, running, look_again_in=found.wait_s)


def _before_binding(run: _Run, gated: Iterable[PodView]) -> tuple[Action, ...]:
    """The gates fall once the place is free and every worker asks for what the plan gives it now: a place that is not
    free yet may be retuned, and a worker of the old size could find no room."""
    return run.sizes.actions or (tuple(_ungate(pod, run.now) for pod in gated) if run.allocation.admitted else ())


def _bring_up(run: _Run) -> RunStep:
    """All gates have fallen: the gang is to be bound soon and to run eventually."""
    taken_back, bind_wait = _not_bound(run)
    if taken_back is not None:
        return taken_back
    stopped = _stopped(run)
    asking = [questions(pod, ungated_at(pod), run.observed, run.now) for pod in run.pods]
    start_wait = min((START_SECONDS - (run.now - ungated_at(pod)) for pod, _ in stopped), default=None)
    slow = [pod for pod in run.pods if pod.node and pod.main.started_at is None and not pod.terminal]
    slow_wait = min((CREATE_SECONDS - (run.now - ungated_at(pod)) for pod in slow), default=None)
    if stopped and start_wait is not None and start_wait <= 0:
        return _end(run, "Failed", stopped[0][1])
    if slow and slow_wait is not None and slow_wait <= 0:
        problem = f"its containers are not there after {int(CREATE_SECONDS)} s, the pod's events say what they wait for"
        return _end(run, "Failed", say(Reason.WORKER_NOT_STARTED, run=run.number, rank=slow[0].rank, problem=problem))
    ask_wait = sooner(*(wait for _, wait in asking))
    size_wait = next_lesson(run.size_limits, run.pods, run.now)
    wait = sooner(bind_wait, start_wait, slow_wait, ask_wait, size_wait, straggler_wait(run.pods, run.now))
    up = run.service.running_since is not None
    facts = {"workers": len(run.gang), "gpu_type": run.allocation.gpu_type}
    return RunStep(
        "Running" if up else "Starting",
        run.service,
        yes(say(Reason.WORKERS_RUNNING, run=run.number, **facts)) if up else no(_starting(run)),
        after=(*run.sizes.actions, *(question for asked, _ in asking for question in asked)),
        look_again_in=wait,
        verdicts={RESOURCES: run.sizes.verdict},
        size_limits=run.size_limits,
    )


def _not_bound(run: _Run) -> tuple[RunStep | None, float | None]:
    """The end of a gang that has been partly bound for too long; else how long it may stay so. A gang that became whole
    just now, which the watch has not brought yet, goes on."""
    late, wait = half_bound(run.pods, run.now)
    if wait is None or wait > 0:
        return None, wait
    why = hindrance(late[0], run.observed)
    if why is None or why.reason is not Reason.VOLUME_NOT_MOUNTED:
        waited = int(run.now - ungated_at(late[0]))
        facts = {"rank": late[0].rank, "seconds": waited, "problem": hold_up(late[0])}
        why = say(Reason.GANG_NOT_BOUND, run=run.number, **facts)
    return replace(_end(run, EVICTED, why), before=tuple(ConfirmUnbound(pod.name, pod.uid) for pod in late)), None


def _leave(run: _Run) -> RunStep:
    """The lease is not renewed: the workers leave by themselves at its end, later they are made to. A place that was
    taken away without a word may be given to others at any moment."""
    if run.allocation.state == "Released":
        return _end(run, EVICTED, say(Reason.PLACE_LOST, run=run.number))
    if not any(pod.node for pod in run.pods):
        return _never_started(run)
    taken_back, bind_wait = _not_bound(run)  # nobody binds the rest of a gang that was told to leave
    if taken_back is not None:
        return taken_back
    stopped = _stopped(run)
    if stopped and run.service.running_since is None:  # nothing was trained that could be kept
        return _end(run, "Failed", stopped[0][1])
    until = parse_time(run.allocation.lease_until) if run.allocation.lease_until else run.now
    grace = leave_seconds(run.spec, run.observed.job.status, run.observed.cluster.max_checkpoint_seconds)
    if run.now >= until + grace:
        return _end(run, "Yielded", say(Reason.LEASE_OVER, run=run.number))
    why = run.allocation.reason or "its lease was not renewed"
    finding = say(Reason.YIELDING, run=run.number, until=format_time(until), why=why)
    wait = sooner(until + grace - run.now, bind_wait, straggler_wait(run.pods, run.now))
    return RunStep("Leaving", run.service, no(finding), look_again_in=wait)


def _refused(run: _Run) -> RunStep | None:
    """The end of a run that the API server refused to let start."""
    refusals = run.observed.refusals
    if refusals.run != run.number:
        return None
    outcome = "Failed" if refusals.invalid else EVICTED
    return _end(run, outcome, say(refusals.reason, run=run.number, problem=refusals.message))


def _never_started(run: _Run) -> RunStep:
    """The end of a run of which no pod was bound. Where the extender revoked it for that, the next try waits."""
    told = finding_of(run.allocation.reason) if run.allocation.state == "Revoked" else None
    if told is not None and told.reason is Reason.PODS_NOT_STARTED:
        return _end(run, EVICTED, told)
    return _end(run, "Yielded", say(Reason.NOT_STARTED, run=run.number))


def _end(run: _Run, outcome: str, finding: Finding) -> RunStep:
    found = {"run": run.number, "outcome": outcome, "reason": reason_text(finding)}
    return _take_down(run, RunOutcome.model_validate(found))


def _take_down(run: _Run, outcome: RunOutcome) -> RunStep:
    """The run is to end so: close its books once no pod of it holds anything, else record it and delete those pods."""
    outcome = _as_it_turned_out(run, outcome_at_step(outcome, (*run.pods, *run.departed)))
    observed, fence_s = run.observed, run.observed.settings.fence_seconds
    running = no(reason_of(outcome))
    holding = [pod for pod in run.pods if not pod.terminal]
    ending = [pod for pod in holding if _ends_by_itself(pod, run.now)]
    if not holding:
        ended = ended_at(run.pods, run.now) if run.pods else run.now
        told = run.observed.job.status.progress
        service = forgiven(run.service, run.number, told, ended)
        books = close(service, run.allocation, outcome, ended=ended, gpus=run.spec.gpus, now=run.now)
        books = noted_failure(books, outcome, told)
        unseen = _unseen_until(run)
        if unseen is not None:
            books = not_before(books, unseen)
        return RunStep("Closed", books, running, started=run.service.running_since)
    books = run.service.model_copy(update={"last": outcome})
    deletions, wait = deletions_of(
        (pod for pod in holding if pod not in ending), observed, run.now, fence_seconds=fence_s
    )
    unfenced = waiting_for(holding, observed.cluster, fence_s, run.now)
    running = running if unfenced is None else no(unfenced)
    again = sooner(wait, ENDING_SECONDS if ending else None)
    return RunStep("Leaving", books, running, after=deletions, look_again_in=again)


def _unseen_until(run: _Run) -> float | None:
    """Until when the next run must not start because a worker of this one may still train where nobody sees it."""
    if run.service.run < run.number:
        return None  # none of its workers ever started
    known, settings = (*run.departed, *run.pods), run.observed.settings
    return unseen_until(run.gang, known, run.observed.cluster, settings.fence_seconds, run.now)


def _as_it_turned_out(run: _Run, outcome: RunOutcome) -> RunOutcome:
    """Once nothing runs any more: a run that the library spoke for and that was killed without a word lost steps."""
    progress, lease = run.observed.job.status.progress, run.allocation.lease_until
    if progress is None or progress.run != run.number or run.spec.throughput is not None:
        return outcome
    if any(not pod.terminal for pod in run.pods) or run.spec.preemption != "Checkpoint" or not lease:
        return outcome
    return killed_before_its_checkpoint(outcome, (*run.pods, *run.departed), progress, run.now - parse_time(lease))


def _ends_by_itself(pod: PodView, now: float) -> bool:
    """Its training has just ended, and the pod will with it: it is left alone, so that its log can be read."""
    ended = pod.main.finished_at
    return ended is not None and pod.deleting_until is None and now < ended + ENDING_SECONDS


def deletions_of(
    pods: Iterable[PodView], observed: Observed, now: float, *, fence_seconds: float | None = None
) -> tuple[tuple[DeletePod, ...], float | None]:
    """What deletes the pods, and when to look again. A pod on a lost node, whose kubelet cannot confirm its end, is
    deleted for good once its grace period is long over, and not before it is fenced where `fence_seconds` is given: it
    may write checkpoints then."""
    deletions: list[DeletePod] = []
    waits: list[float] = []
    for pod in pods:
        if pod.deleting_until is None:
            deletions.append(DeletePod(pod.name, pod.uid))
        elif pod.node and observed.cluster.lost(pod.node):
            fence = fenced_at(pod, observed.cluster, fence_seconds) if fence_seconds is not None else None
            wait = max(pod.deleting_until + FORCE_SECONDS, fence or 0.0) - now
            if wait <= 0:
                deletions.append(DeletePod(pod.name, pod.uid, grace_seconds=0))
            else:
                waits.append(wait)
    return tuple(deletions), sooner(*waits)


def _stopped(run: _Run) -> list[tuple[PodView, Finding]]:
    """The workers that cannot start, with the reason."""
    return [(pod, why) for pod in run.pods if (why := cannot_start(pod, run.observed)) is not None]


def _too_small(run: _Run) -> Finding | None:
    found = (too_small(run.spec.template, member.place.amounts) for member in run.gang)
    return next((finding for finding in found if finding is not None), None)


def _starting(run: _Run) -> Finding:
    if not run.allocation.admitted:
        return say(Reason.WAITING_FOR_ROOM, run=run.number)
    for pod in run.pods:
        waits = hindrance(pod, run.observed)
        if waits is not None:
            return waits
    running = sum(worker_state(pod) is WorkerState.RUNNING for pod in run.pods)
    return say(Reason.WORKERS_STARTING, run=run.number, running=running, workers=len(run.gang))


def _ungate(pod: PodView, now: float) -> UngatePod:
    return UngatePod(pod.name, pod.uid, tuple(gate for gate in pod.gates if gate != GATE), now)
