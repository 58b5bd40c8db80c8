"""Kubernetes objects reduced to what decisions need, parsed once for each change."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from sys import intern
from typing import Any, Final, NamedTuple

import msgspec
from pydantic import ValidationError

from synergy_api.amounts import NOTHING, Amounts
from synergy_api.cluster.job_of_pod import job_uid
from synergy_api.cluster.nodes import Object
from synergy_api.cluster.pods import device_requests, is_terminal, least_requests, pod_requests
from synergy_api.devices import count_of, device_class
from synergy_api.names import (
    ANNOTATION_DEVICES,
    ANNOTATION_PLANNED_NODE,
    ANNOTATION_RESOURCE,
    LABEL_JOB,
    LABEL_RANK,
    LABEL_ROLE,
    LABEL_RUN,
    ROLE_PROFILE,
    ROLE_WORKER,
)
from synergy_api.parts.template import depth_problem
from synergy_api.program import model
from synergy_api.resources.training_job import TrainingJobSpec, TrainingJobStatus
from synergy_api.timestamps import parse_time
from synergy_core.model import snapshot as core
from synergy_extender.cluster.jobs.at_rest import is_at_rest
from synergy_extender.cluster.jobs.shared_sets import share_field_sets
from synergy_extender.cluster.quota_views import PodScopes, pod_scopes

_SHARED_PROFILES: Final = 4096
_MOST_CONSTRAINTS_BYTES: Final = 256 << 10
"""As JSON. The operator refuses a whole template of more (`SpecTooLarge`), so the author of each such job is told."""
_MOST_DIGITS: Final = 63
"""Of a label. What calls itself a pod in a request may say more than Python reads as a number."""


class Key(NamedTuple):
    """Namespace and name of a TrainingJob."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class RunMember:
    """Which place in which run of which job a pod fills; what its labels say."""

    job: Key
    run: int
    rank: int
    role: str
    job_uid: str = ""
    """Of the job that the pod was made for; empty where the pod does not say."""

    def is_of(self, job: "JobView") -> bool:
        """Whether the pod was made for this job, not for an earlier or a later one of its name."""
        return self.job_uid in ("", job.uid)


@dataclass(frozen=True, slots=True)
class PodView:
    """One pod. `node` is empty until it is bound; `member` is None for pods that are not ours; `leaves_by` is until
    when (Unix time) a deleted pod may take, its grace period."""

    namespace: str
    name: str
    uid: str
    node: str
    requests: Amounts
    terminal: bool
    leaves_by: float | None
    gated: bool
    member: RunMember | None
    planned_node: str
    started: bool = False
    """Whether the kubelet has taken it in: it has its devices by then."""
    devices: bool = False
    """Its node's GPUs are shared: the next pod may wait for this one's start."""
    extended: Mapping[str, int] = field(default_factory=dict)
    """Its extended resources. `requests` count those as GPUs that are GPUs of its node."""

    def counted(self, gpu_resources: Iterable[str]) -> "PodView":
        """The pod on a node whose GPUs have these names."""
        gpus = count_of(self.extended, gpu_resources)
        return self if gpus == self.requests.gpus else replace(self, requests=self.requests._replace(gpus=gpus))

    @property
    def holds(self) -> bool:
        """Whether it takes room on a node now."""
        return bool(self.node) and not self.terminal


@dataclass(frozen=True, slots=True)
class JobView:
    """One TrainingJob. `created` is Unix time; `constraints` is the part of the template that picks nodes, as JSON:
    parsed, it can take 24 times as much memory; `scoped` is the part that quotas go by; `least` is what its containers
    beside the first make each worker pod need; `model` is the name of what it trains, which jobs of other batches and
    GPUs have in common; `profiles` are the sensitivity matrices that plans go by, by GPU type."""

    key: Key
    uid: str
    resource_version: str
    created: float
    deleting: bool
    spec: TrainingJobSpec
    status: TrainingJobStatus
    constraints: str
    least: Amounts
    model: str
    scoped: PodScopes
    profiles: Mapping[str, core.Profile]
    at_rest: bool = field(init=False, compare=False)
    """Whether nothing is pending about it (`is_at_rest`)."""
    failed_by_nodes: bool = field(init=False, compare=False)
    """Whether runs of it failed on nodes."""

    def __post_init__(self) -> None:
        service = self.status.service
        object.__setattr__(self, "at_rest", is_at_rest(self.spec, self.status, deleting=self.deleting))
        object.__setattr__(self, "failed_by_nodes", service is not None and bool(service.node_failures))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else 0


def member_of(pod: Object) -> RunMember | None:
    """What the pod says it is, or None where its labels do not name a place in a run."""
    metadata = pod.get("metadata") or {}
    labels = metadata.get("labels") or {}
    job, run, rank, role = (labels.get(label) for label in (LABEL_JOB, LABEL_RUN, LABEL_RANK, LABEL_ROLE))
    if not job or role not in (ROLE_WORKER, ROLE_PROFILE):
        return None
    if not (run and run.isdecimal() and rank and rank.isdecimal()) or max(len(run), len(rank)) > _MOST_DIGITS:
        return None
    key = Key(intern(metadata.get("namespace", "")), intern(job))
    return RunMember(key, int(run), int(rank), intern(role), intern(job_uid(pod)))


def read_pod(pod: Object) -> PodView:
    """The view of a Pod object."""
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    try:
        requests, extended = pod_requests(pod), device_requests(spec)
    except ValueError:  # the API server validates quantities: only a resource this does not count can be odd
        requests, extended = NOTHING, {}
    member = member_of(pod)
    resource = annotations.get(ANNOTATION_RESOURCE, "")
    if member is not None and device_class(resource) is not None:
        extended[resource] = _number(annotations.get(ANNOTATION_DEVICES, ""))
    return PodView(
        namespace=intern(metadata.get("namespace", "")),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        node=intern(spec.get("nodeName") or ""),
        requests=requests,
        terminal=is_terminal(pod),
        leaves_by=parse_time(metadata["deletionTimestamp"]) if metadata.get("deletionTimestamp") else None,
        gated=bool(spec.get("schedulingGates")),
        member=member,
        planned_node=intern(annotations.get(ANNOTATION_PLANNED_NODE, "")),
        started=bool((pod.get("status") or {}).get("startTime")),
        devices=ANNOTATION_DEVICES in annotations,
        extended=extended,
    )


_UNREAD: Final = frozenset({"conditions", "problem", "summary", "workers"})
"""What only people read of a job is of no use to plans, and would be a third of a job's view."""


def read_job(item: Object) -> JobView:
    """The view of a TrainingJob object. Its `status` has all but what only people read, and neither `spec` nor
    `status` the matrices: `profiles` has them, jobs with equal ones the same objects.

    Raises ValueError naming the first field that does not parse.
    """
    metadata = item["metadata"]
    template = (item.get("spec") or {}).get("template") or {}
    problem = depth_problem(template)
    if problem:
        raise ValueError(problem)
    pod_spec = template.get("spec") or {}
    constraints = _constraints(pod_spec)
    try:
        spec = TrainingJobSpec.model_validate({**(item.get("spec") or {}), "template": {}})
        written = item.get("status") or {}
        kept = {field: written[field] for field in written.keys() - _UNREAD}
        # what a newer version has written stays unread: after a rollback, jobs must not lose their places
        status = TrainingJobStatus.model_validate(kept, extra="ignore")
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None
    profiles = _profiles(spec, status)
    spec, status = _without_matrices(spec, status)
    share_field_sets(spec)
    share_field_sets(status)
    return JobView(
        key=Key(intern(metadata.get("namespace", "")), intern(metadata["name"])),
        uid=intern(metadata.get("uid", "")),
        resource_version=str(metadata.get("resourceVersion", "")),
        created=parse_time(metadata["creationTimestamp"]),
        deleting=bool(metadata.get("deletionTimestamp")),
        spec=spec,
        status=status,
        constraints=constraints,
        least=_least(pod_spec),
        scoped=pod_scopes(pod_spec),
        model=model(template, gpus=spec.gpus, batch_size=spec.batch_size),
        profiles=profiles,
    )


def _constraints(pod_spec: Object) -> str:
    """What of it picks nodes, as JSON; of equal texts always the same object."""
    picks = {field: pod_spec[field] for field in ("nodeSelector", "affinity", "tolerations") if pod_spec.get(field)}
    text = msgspec.json.encode(picks, order="sorted")
    if len(text) > _MOST_CONSTRAINTS_BYTES:
        most = f"{len(text)} bytes as JSON, at most {_MOST_CONSTRAINTS_BYTES} are planned"
        raise ValueError(f"spec.template.spec: nodeSelector, affinity and tolerations have {most}")
    return intern(text.decode())


def _least(pod_spec: Object) -> Amounts:
    try:
        return least_requests(pod_spec)
    except (ValueError, TypeError, AttributeError, KeyError):  # no pod at all: the operator names the field
        return NOTHING


def _profiles(spec: TrainingJobSpec, status: TrainingJobStatus) -> Mapping[str, core.Profile]:
    """The measured matrices; before the operator has copied them, those that the spec provides; none with Skip.

    Raises FieldError, a ValueError, if an axis does not ascend.
    """
    if spec.profile.mode == "Skip":
        return {}
    measured = status.profile.matrices if status.profile is not None else []
    return {
        intern(matrix.gpu_type): _shared(
            core.Profile(
                cpu_millis=tuple(matrix.cpu_millis),
                memory_bytes=tuple(matrix.memory_bytes),
                steps_per_s=tuple(tuple(row) for row in matrix.steps_per_second),
                client_thread_percent=matrix.client_thread_percent or 100,
            )
        )
        for matrix in measured or spec.profile.matrices
    }


@lru_cache(maxsize=_SHARED_PROFILES)
def _shared(profile: core.Profile) -> core.Profile:
    """The profile; of equal ones, which jobs of one program have, always the same object."""
    return profile


def _without_matrices(spec: TrainingJobSpec, status: TrainingJobStatus) -> tuple[TrainingJobSpec, TrainingJobStatus]:
    """The same without what would be held twice."""
    none: dict[str, Any] = {"matrices": []}
    if spec.profile.matrices:
        spec = spec.model_copy(update={"profile": spec.profile.model_copy(update=none)})
    if status.profile is not None and status.profile.matrices:
        status = status.model_copy(update={"profile": status.profile.model_copy(update=none)})
    return spec, status


def first_problem(error: ValidationError, within: str = "") -> str:
    """The first complaint of pydantic, with the field's path, which begins with `within`."""
    first = error.errors()[0]
    path = ".".join(str(part) for part in (within, *first["loc"]) if part != "")
    return f"{path}: {first['msg'].removeprefix('Value error, ')}"


def matters(job: JobView) -> tuple[Any, ...]:
    """What of a job decisions depend on: its change wakes the planner."""
    status = job.status
    given = job.uid, job.deleting, job.spec, job.constraints, job.least
    shares = status.allocation is not None and status.allocation.shared_gpu is not None
    gpus = (status.progress.run, status.progress.gpu_uuids) if shares and status.progress is not None else None
    return *given, status.phase, status.service, status.allocation, status.profile, job.profiles, gpus


def begins_to_wait(before: JobView | None, job: JobView) -> bool:
    """Whether the job may want a place now and did not before."""
    waits = job.status.phase in ("Queued", "Profiling")
    return waits and (before is None or before.uid != job.uid or before.status.phase != job.status.phase)
