"""One step of an open run whose pods are those of a managed object.

The object's own controller makes and replaces the pods. They come with the operator's gate. The run starts with the
object's resumption, and each pod takes the rank, and with it the node, that is free. The run ends with the object's
suspension.
"""

from typing import Final, Literal

from synergy_api.leaving import leave_seconds
from synergy_api.parts.service import RunOutcome
from synergy_api.reasons import Finding, Reason, say
from synergy_api.timestamps import format_time, parse_time
from synergy_operator.actions import Action, ClaimPod, SetSuspended
from synergy_operator.conditions import no, yes
from synergy_operator.pods.template import pinned
from synergy_operator.run.half_bound import half_bound
from synergy_operator.run.open_run import OpenRun
from synergy_operator.run.start import refused, starting, ungate, unstarted
from synergy_operator.run.step import RunStep, earliest, reason_of
from synergy_operator.run.take_down import EVICTED, closed, pod_deletions, run_outcome
from synergy_operator.views.observed import Observed
from synergy_operator.views.owners.view import OwnerView

LEAVE_SECONDS: Final = 5.0
"""How long to wait for the next look at pods that their controller deletes."""


def follow(run: OpenRun, outcome: RunOutcome | None) -> RunStep:
    """The next step. `outcome` is the recorded one; the run is taken down if there is one."""
    outcome = outcome or _ended(run)
    if outcome is not None:
        return _take_down(run, outcome)
    owner = run.observed.owner
    if owner is None:
        return _take_down(run, run_outcome(run, EVICTED, say(Reason.OWNER_MISSING)))
    bound = any(pod.node and not pod.terminal for pod in run.pods)
    if run.allocation.state != "Granted" or not (run.wanted or bound):
        return _leaving(run, bound=bound)
    refusal = refused(run)
    if refusal is not None:
        return _take_down(run, refusal)
    return _start(run, owner) if run.service.run < run.number else _keep_up(run, owner)


def owner_ended(owner: OwnerView | None) -> tuple[Literal["Succeeded", "Failed"], Finding] | None:
    """Phase and finding once the object has ended; None before."""
    if owner is None or not owner.finished:
        return None
    if owner.succeeded:
        return "Succeeded", say(Reason.OWNER_SUCCEEDED, object=owner.full_name)
    return "Failed", say(Reason.OWNER_FAILED, object=owner.full_name, problem=owner.message or "its controller says so")


def unmanaged(observed: Observed) -> Finding | None:
    """Why a job with spec.managed has no object, or one that cannot be managed; None if all is well."""
    if observed.job.spec is None or observed.job.spec.managed is None:
        return None
    owner = observed.owner
    if owner is None:
        return say(Reason.OWNER_MISSING)
    return say(Reason.NOT_MANAGED, object=owner.full_name, problem=owner.problem) if owner.problem else None


def suspension(observed: Observed) -> tuple[Action, ...]:
    """Suspend the object, if anything but the operator has resumed it."""
    owner = observed.owner
    if owner is None or owner.suspended or owner.finished or owner.deleting:
        return ()
    return (SetSuspended(owner.kind, owner.name, owner.uid, True),)


def _ended(run: OpenRun) -> RunOutcome | None:
    """The end that nobody planned: the object's own, or the loss of a node."""
    found = owner_ended(run.observed.owner)
    if found is not None:
        return run_outcome(run, found[0], found[1])
    for pod in run.pods:
        if pod.node and not pod.terminal and run.observed.cluster.lost(pod.node):
            problem = f"node {pod.node} does not report"
            return run_outcome(run, EVICTED, say(Reason.WORKER_LOST, run=run.number, rank=pod.rank, problem=problem))
    owner = run.observed.owner
    if owner is not None and owner.suspended and run.service.run >= run.number:
        return run_outcome(run, EVICTED, say(Reason.OWNER_SUSPENDED, object=owner.full_name))
    return None


def _start(run: OpenRun, owner: OwnerView) -> RunStep:
    """Resume the object, and give each of its pods a rank. It is resumed once the place is free."""
    if any(pod.run < run.number and not pod.terminal for pod in run.observed.pods) or not run.allocation.admitted:
        return RunStep("Starting", run.service, no(say(Reason.WAITING_FOR_ROOM, run=run.number)))
    if owner.suspended:
        resume = SetSuspended(owner.kind, owner.name, owner.uid, False)
        return RunStep("Starting", run.service, no(starting(run)), before=(resume,), unwritten=True)
    claims = _claims(run)
    if claims:
        return RunStep("Starting", run.service, no(starting(run)), before=claims, unwritten=True)
    if len(run.pods) < run.size:
        return RunStep("Starting", run.service, no(starting(run)))
    return RunStep("Starting", run.service.model_copy(update={"run": run.number}), no(starting(run)))


def _keep_up(run: OpenRun, owner: OwnerView) -> RunStep:
    """Let the pods go to their nodes, also those that replace failed or completed ones."""
    late, wait = half_bound(run.pods, run.now)
    if wait is not None and wait <= 0:
        problem = late[0].unschedulable or "no scheduler has bound it"
        facts = {"rank": late[0].rank, "seconds": 30, "problem": problem}
        return _take_down(run, run_outcome(run, EVICTED, say(Reason.GANG_NOT_BOUND, run=run.number, **facts)))
    gated = [pod for pod in run.pods if pod.gated]
    up = run.service.running_since is not None
    facts = {"workers": run.size, "gpu_type": run.allocation.gpu_type}
    return RunStep(
        "Running" if up else "Starting",
        run.service,
        yes(say(Reason.WORKERS_RUNNING, run=run.number, **facts)) if up else no(starting(run)),
        after=(*_claims(run), *(ungate(pod, run.now) for pod in gated)),
        requeue_after=wait,
    )


def _claims(run: OpenRun) -> tuple[ClaimPod, ...]:
    """A free rank for each pod that has none. A rank is free while no pod of it runs or may run."""
    taken = {pod.rank for pod in run.pods if not pod.terminal and not pod.deleting}
    free = [worker for worker in run.gang if worker.rank not in taken]
    affinity = run.spec.template["spec"].get("affinity") or {}
    waiting = sorted(run.observed.unclaimed, key=lambda pod: (pod.created_at, pod.name))
    return tuple(
        ClaimPod(
            pod.name,
            pod.uid,
            run.number,
            worker.rank,
            worker.share.node,
            run.observed.job.uid,
            pinned(affinity, worker.share.node)["nodeAffinity"],
        )
        for worker, pod in zip(free, waiting, strict=False)
    )


def _leaving(run: OpenRun, *, bound: bool) -> RunStep:
    """The next step of a run that is revoked, or that the job no longer wants before a pod of it was bound."""
    if run.allocation.state == "Released":
        return _take_down(run, run_outcome(run, EVICTED, say(Reason.PLACE_LOST, run=run.number)))
    if not bound:
        return _take_down(run, unstarted(run))
    until = parse_time(run.allocation.lease_until) if run.allocation.lease_until else run.now
    grace = leave_seconds(run.spec, run.observed.job.status, run.observed.cluster.max_checkpoint_seconds)
    if run.now >= until + grace:
        return _take_down(run, run_outcome(run, "Yielded", say(Reason.LEASE_OVER, run=run.number)))
    why = run.allocation.reason or "it was revoked"
    finding = say(Reason.YIELDING, run=run.number, until=format_time(until), why=why)
    return RunStep("Leaving", run.service, no(finding), requeue_after=until + grace - run.now)


def _take_down(run: OpenRun, outcome: RunOutcome) -> RunStep:
    """Suspend the object, wait until none of its pods holds resources, and close the accounting."""
    stop = suspension(run.observed)
    holding = [pod for pod in (*run.observed.pods, *run.observed.unclaimed) if not pod.terminal]
    if not holding and not stop:
        return closed(run, outcome)
    going = [pod for pod in holding if pod.deleting]
    fence_s = run.observed.settings.fence_seconds
    deletions, wait = pod_deletions(going, run.observed, run.now, fence_seconds=fence_s)
    accounting = run.service.model_copy(update={"last": outcome})
    again = earliest(wait, LEAVE_SECONDS)
    return RunStep("Leaving", accounting, no(reason_of(outcome)), after=(*stop, *deletions), requeue_after=again)
