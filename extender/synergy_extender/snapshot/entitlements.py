"""What the cluster's administrator lets each job ask for: its tenant, and its weight, deadline, PriorityClass and
`preemption: Never` within the tenant's caps. Pure.

The job's own spec is never trusted in these: plans go by this module.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from synergy_api.cluster.priority_classes import PriorityClasses
from synergy_api.cluster.tenancy import Established, Tenancy
from synergy_api.parts.waiting import Restriction
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.training_job import FINISHED
from synergy_core.model.reasons import gpus_in_words
from synergy_extender.cluster.run_state import RunState, open_run, run_started, run_state
from synergy_extender.cluster.views import JobView, Key

_MOST_NAMES = 8
NO_CLASSES = PriorityClasses()


@dataclass(frozen=True)
class Entitlement:
    """What plans take in place of the job's own words. `restriction` shows the user where the two differ."""

    tenant: str
    weight: float
    preemptible: bool
    deadline: bool
    priority: int = 0
    urgent: bool = False
    restriction: Restriction | None = None


@dataclass(frozen=True)
class Entitlements:
    """Those of all jobs. `waits` are waiting jobs for which their tenant's never-preempted GPUs do not suffice."""

    by_job: Mapping[Key, Entitlement] = field(default_factory=dict)
    waits: Mapping[Key, Finding] = field(default_factory=dict)


@dataclass(frozen=True)
class _Never:
    """One never-preempted job that holds GPUs or waits for them."""

    job: JobView
    established: Established
    holds: bool
    since: float

    @property
    def order(self) -> tuple[bool, float, Key]:
        """Jobs that hold GPUs come first, then those that came first."""
        return not self.holds, self.since, self.job.key


def entitlements(
    jobs: Iterable[JobView], tenancy: Tenancy, now: float, classes: PriorityClasses = NO_CLASSES
) -> Entitlements:
    """The entitlement of each job, and which jobs wait for their tenant's cap at `now` (Unix time)."""
    listed = list(jobs)
    established = {job.key: tenancy.established(job.key.namespace, job.spec.tenant) for job in listed}
    beyond, waits = _beyond_the_cap(listed, established, now)
    by_job = {job.key: _entitlement(job, established[job.key], job.key in beyond, classes) for job in listed}
    return Entitlements(by_job, waits)


def never_preempted_gpus(jobs: Iterable[JobView], entitled: Entitlements, now: float) -> dict[str, int]:
    """GPUs that never-preempted jobs hold under their tenant's cap, by tenant."""
    held: dict[str, int] = {}
    for job in jobs:
        entitlement = entitled.by_job.get(job.key)
        if entitlement is not None and not entitlement.preemptible and _holds(job, now):
            held[entitlement.tenant] = held.get(entitlement.tenant, 0) + job.spec.gpus
    return held


def _beyond_the_cap(
    jobs: Iterable[JobView], established: Mapping[Key, Established], now: float
) -> tuple[set[Key], dict[Key, Finding]]:
    """Jobs that hold GPUs beyond their tenant's cap, and those that have to wait for it.

    A job that needs more than the whole cap delays no other. Of the others, later jobs wait for earlier ones. Otherwise
    small jobs could pass a larger one forever.
    """
    found = [one for job in jobs if (one := _never(job, established[job.key], now)) is not None]
    taken: dict[str, int] = {}
    beyond: set[Key] = set()
    waits: dict[Key, Finding] = {}
    for one in sorted(found, key=lambda one: one.order):
        tenant, cap, gpus = one.established.name, one.established.caps.max_never_preempted_gpus, one.job.spec.gpus
        before = taken.get(tenant, 0)
        fits = before + gpus <= cap
        if fits or (not one.holds and gpus <= cap):
            taken[tenant] = before + gpus
        if fits:
            continue
        if one.holds:
            beyond.add(one.job.key)
        else:
            facts = {"gpus": gpus_in_words(gpus), "most": gpus_in_words(cap), "held": min(before, cap)}
            waits[one.job.key] = say(Reason.NEVER_PREEMPTED_CAP, tenant=tenant, **facts)
    return beyond, waits


def _never(job: JobView, established: Established, now: float) -> _Never | None:
    if job.spec.preemption != "Never" or job.status.phase in FINISHED or job.deleting:
        return None
    if _holds(job, now):
        return _Never(job, established, True, run_started(job, now) or job.created)
    if run_state(job, now) is RunState.WAITING and job.status.phase != "Profiling":
        return _Never(job, established, False, job.created)
    return None


def _holds(job: JobView, now: float) -> bool:
    if run_state(job, now) is not RunState.HOLDING:
        return False
    allocation = open_run(job)
    return allocation is not None and allocation.purpose == "Train"


def _entitlement(job: JobView, established: Established, beyond: bool, classes: PriorityClasses) -> Entitlement:
    spec, caps = job.spec, established.caps
    limits = []
    named = classes.of(spec.priority_class_name)
    of_class = named or classes.of_jobs_without
    priority = min(of_class.value, max(caps.max_priority, classes.of_jobs_without.value))
    if of_class.value > priority:
        limits.append(
            f"spec.priorityClassName is {spec.priority_class_name} of value {of_class.value} and counts as {priority}, "
            "the cap of its tenant"
        )
    if spec.weight > caps.max_weight:
        limits.append(f"spec.weight is {spec.weight:g} and counts as {caps.max_weight:g}, the cap of its tenant")
    if spec.slo is not None and caps.deadlines == "Denied":
        limits.append("its tenant may use no deadlines, and plans do not go by spec.slo.deadline")
    if beyond:
        most = gpus_in_words(caps.max_never_preempted_gpus)
        limits.append(
            f"its tenant may keep at most {most} from preemption, and the job is preempted like others "
            "although spec.preemption is Never"
        )
    return Entitlement(
        tenant=established.name,
        weight=min(spec.weight, caps.max_weight),
        preemptible=spec.preemption != "Never" or beyond,
        deadline=caps.deadlines == "Allowed",
        priority=priority,
        urgent=of_class.urgent and of_class.value == priority,
        restriction=_restriction(job, established, limits, known=named is not None)
        if job.status.phase not in FINISHED
        else None,
    )


def _restriction(job: JobView, established: Established, limits: list[str], *, known: bool) -> Restriction | None:
    found = []
    if established.refused:
        shown = established.allowed[:_MOST_NAMES]
        allowed = ", ".join(shown) + (", ..." if len(shown) < len(established.allowed) else "")
        facts = {"namespace": job.key.namespace, "allowed": allowed, "used": established.name}
        found.append(say(Reason.TENANT_REFUSED, tenant=job.spec.tenant, **facts))
    if limits:
        found.append(say(Reason.TENANT_CAPPED, limits="; ".join(limits), tenant=established.name))
    if not known:
        found.append(say(Reason.PRIORITY_CLASS_UNKNOWN, name=job.spec.priority_class_name))
    if not found:
        return None
    message = "; ".join(finding.message for finding in found)
    return Restriction(tenant=established.name, reason=found[0].reason.value, message=message)
