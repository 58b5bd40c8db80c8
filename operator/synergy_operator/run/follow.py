"""One step of an open training run: create its pods, start them together, keep them as planned, and detect its end.

Every decision follows from the current state, with one exception: the decision to end the run. It is recorded in
`service.last` before any pod is deleted, because the deletions change what the next reconcile sees.
"""

from dataclasses import replace
from typing import Final

from synergy_api.leaving import leave_seconds
from synergy_api.parts.allocation import Allocation
from synergy_api.parts.service import RunOutcome
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_api.timestamps import format_time, parse_time
from synergy_operator.actions import ConfirmUnbound
from synergy_operator.conditions import RESOURCES, no, yes
from synergy_operator.run.half_bound import half_bound, unbound_reason, ungated_at
from synergy_operator.run.managed import follow as managed_run
from synergy_operator.run.open_run import OpenRun
from synergy_operator.run.outcome import natural_end, straggler_wait
from synergy_operator.run.partner_failure import attribute_failure
from synergy_operator.run.size_limits import next_bounds_change
from synergy_operator.run.start import before_binding, end_unstarted, refused_end, start, starting
from synergy_operator.run.start_blocker import cannot_start, start_blocker, warning_reads
from synergy_operator.run.step import RunStep, earliest, recorded_outcome
from synergy_operator.run.take_down import EVICTED, end_run, take_down
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView

START_SECONDS: Final = 120.0
"""How long a bound worker may be unable to start (image, volume, configuration) before the run fails."""
CREATE_SECONDS: Final = 900.0
"""How long the kubelet may take to create a bound worker's containers (large images, volumes) before the run fails."""


def follow(observed: Observed, spec: TrainingJobSpec, allocation: Allocation, now: float, *, wanted: bool) -> RunStep:
    """The next step of the open run. `wanted` is false if the job must not start: suspended, finished or not valid."""
    run = OpenRun(observed, spec, allocation, now, wanted)
    outcome = recorded_outcome(run.service, run.number)
    if spec.managed is not None:
        return managed_run.follow(run, outcome)
    if outcome is not None:
        return take_down(run, outcome)
    if not run.gang and not run.pods:
        return end_run(run, "Yielded", say(Reason.NOT_STARTED, run=run.number))
    return start(run) if run.service.run < run.number else _watch(run)


def _watch(run: OpenRun) -> RunStep:
    outcome = natural_end(run.number, run.gang, run.pods, run.observed.cluster, run.now)
    if outcome is not None:
        return _ended(run, outcome)
    if run.allocation.state != "Granted":
        return _revoked(run)
    if not run.wanted and all(pod.gated for pod in run.pods):
        return end_unstarted(run)
    gated = [pod for pod in run.pods if pod.gated]
    refused = refused_end(run) if gated else None
    if refused is not None:
        return refused
    if gated:
        after = before_binding(run, gated)
        return RunStep("Starting", run.service, no(starting(run)), after=after, size_limits=run.size_limits)
    return _bring_up(run)


def _ended(run: OpenRun, outcome: RunOutcome) -> RunStep:
    """The next step after an outcome. A failure beside partners on a shared GPU is attributed first."""
    shared = run.allocation.shared_gpu
    if shared is None or not (shared.asked or shared.seen):
        return take_down(run, outcome)
    found = attribute_failure(outcome, run.pods, run.observed.partners, run.service.last, run.now)
    if found.wait_s is None:
        return take_down(run, found.outcome)
    facts = {"workers": len(run.gang), "gpu_type": run.allocation.gpu_type}
    running = yes(say(Reason.WORKERS_RUNNING, run=run.number, **facts))
    return RunStep("Running", run.service, running, requeue_after=found.wait_s)


def _bring_up(run: OpenRun) -> RunStep:
    """The next step once all gates are removed: the gang is bound and starts."""
    ended, bind_wait = _not_bound(run)
    if ended is not None:
        return ended
    blocked = _blocked(run)
    reads = [warning_reads(pod, ungated_at(pod), run.observed, run.now) for pod in run.pods]
    start_wait = min((START_SECONDS - (run.now - ungated_at(pod)) for pod, _ in blocked), default=None)
    slow = [pod for pod in run.pods if pod.node and pod.main.started_at is None and not pod.terminal]
    slow_wait = min((CREATE_SECONDS - (run.now - ungated_at(pod)) for pod in slow), default=None)
    if blocked and start_wait is not None and start_wait <= 0:
        pod, finding = blocked[0]
        return end_run(run, "Failed", finding, "" if finding.reason is Reason.IMAGE_NOT_PULLED else pod.node)
    if slow and slow_wait is not None and slow_wait <= 0:
        problem = f"its containers do not exist after {int(CREATE_SECONDS)} s, the pod's events show what they wait for"
        finding = say(Reason.WORKER_NOT_STARTED, run=run.number, rank=slow[0].rank, problem=problem)
        return end_run(run, "Failed", finding, slow[0].node)
    read_wait = earliest(*(wait for _, wait in reads))
    size_wait = next_bounds_change(run.size_limits, run.pods, run.now)
    wait = earliest(bind_wait, start_wait, slow_wait, read_wait, size_wait, straggler_wait(run.pods, run.now))
    up = run.service.running_since is not None
    facts = {"workers": len(run.gang), "gpu_type": run.allocation.gpu_type}
    return RunStep(
        "Running" if up else "Starting",
        run.service,
        yes(say(Reason.WORKERS_RUNNING, run=run.number, **facts)) if up else no(starting(run)),
        after=(*run.sizes.actions, *(read for found, _ in reads for read in found)),
        requeue_after=wait,
        updates={RESOURCES: run.sizes.condition},
        size_limits=run.size_limits,
    )


def _not_bound(run: OpenRun) -> tuple[RunStep | None, float | None]:
    """The end of a gang that has been partly bound for too long, or the seconds that it has left.

    The pods are confirmed to be unbound first, because the watch may be late.
    """
    late, wait = half_bound(run.pods, run.now)
    if wait is None or wait > 0:
        return None, wait
    why = start_blocker(late[0], run.observed)
    if why is None or why.reason is not Reason.VOLUME_NOT_MOUNTED:
        waited = int(run.now - ungated_at(late[0]))
        facts = {"rank": late[0].rank, "seconds": waited, "problem": unbound_reason(late[0])}
        why = say(Reason.GANG_NOT_BOUND, run=run.number, **facts)
    return replace(end_run(run, EVICTED, why), before=tuple(ConfirmUnbound(pod.name, pod.uid) for pod in late)), None


def _revoked(run: OpenRun) -> RunStep:
    """The next step of a run that is revoked.

    The workers leave by themselves at the end of the lease, and are deleted some time later. An allocation that
    somebody removed ends the run at once, because its resources may be given to others at any moment.
    """
    if run.allocation.state == "Released":
        return end_run(run, EVICTED, say(Reason.PLACE_LOST, run=run.number))
    if not any(pod.node for pod in run.pods):
        return end_unstarted(run)
    ended, bind_wait = _not_bound(run)  # the rest of a revoked gang is never bound
    if ended is not None:
        return ended
    blocked = _blocked(run)
    if blocked and run.service.running_since is None:  # there is no progress to save
        return end_run(run, "Failed", blocked[0][1])
    until = parse_time(run.allocation.lease_until) if run.allocation.lease_until else run.now
    grace = leave_seconds(run.spec, run.observed.job.status, run.observed.cluster.max_checkpoint_seconds)
    if run.now >= until + grace:
        return end_run(run, "Yielded", say(Reason.LEASE_OVER, run=run.number))
    why = run.allocation.reason or "it was revoked"
    finding = say(Reason.YIELDING, run=run.number, until=format_time(until), why=why)
    wait = earliest(until + grace - run.now, bind_wait, straggler_wait(run.pods, run.now))
    return RunStep("Leaving", run.service, no(finding), requeue_after=wait)


def _blocked(run: OpenRun) -> list[tuple[PodView, Finding]]:
    """The workers that cannot start, with the reason."""
    return [(pod, why) for pod in run.pods if (why := cannot_start(pod, run.observed)) is not None]
