"""The check that a job can be planned on this cluster.

A valid job may still have to wait. An invalid one needs a change of the job or of the nodes, and is checked again when
either changes.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from synergy_api.amounts import DIMENSIONS, Amounts
from synergy_api.cluster.pods import init_requests, sidecar_requests
from synergy_api.cluster.pools import NodeCapacity
from synergy_api.devices import is_gpu
from synergy_api.parts.waiting import Restriction
from synergy_api.quantity import byte_count, format_bytes, parse_quantity
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_operator.job.validity.overridden import overridden
from synergy_operator.pods.share import too_small
from synergy_operator.pods.template_check import template_problem
from synergy_operator.pods.throughput import regex_error
from synergy_operator.profile.curve import first_decrease
from synergy_operator.views.cluster import ClusterView
from synergy_operator.views.job import MOST_TEMPLATE_BYTES, JobView

Nodes = tuple[NodeCapacity, ...]
_MOST_NAMES: Final = 10
_RESTRICTIONS: Final = (Reason.TENANT_REFUSED, Reason.TENANT_CAPPED, Reason.PRIORITY_CLASS_UNKNOWN)
LEAST_MEMORY_BYTES: Final = 16 << 20
"""A container runtime does not start a container with less memory than a few MiB."""


def validation_error(job: JobView, cluster: ClusterView) -> Finding | None:
    """Why the job cannot be planned, on the nodes that are there and those that pools may get; None if it can."""
    if job.spec is None:
        return say(Reason.INVALID_SPEC, problem=job.spec_error)
    spec, cluster = job.spec, cluster.grown
    checks: tuple[Callable[[], Finding | None], ...] = (
        partial(_size, job),
        partial(_template, spec),
        partial(_throughput, spec),
        partial(_sidecars, spec),
        partial(first_decrease, "spec.profile.matrices", spec.profile.matrices),
        partial(_types, spec, cluster),
        partial(_worker, spec, cluster),
        partial(_gpus, spec, cluster),
        partial(_maxima, spec),
        partial(_minima, spec, cluster),
        partial(_room_beside_training, spec, cluster),
        partial(_matrix_for_some_type, spec, cluster),
    )
    return next((finding for check in checks if (finding := check()) is not None), None)


def accepted(spec: TrainingJobSpec, cluster: ClusterView, restriction: Restriction | None = None) -> Finding:
    """The finding of a job that can be planned.

    `restriction` is what the job's tenant may not use, as the extender reports it. It takes precedence over a tenant
    that the policy does not name, and that over template fields that are not used.
    """
    if restriction is not None and restriction.reason in _RESTRICTIONS:
        return Finding(Reason(restriction.reason), restriction.message)
    if spec.tenant and cluster.tenants and spec.tenant not in cluster.tenants:
        named = ", ".join(cluster.tenants[:_MOST_NAMES]) + (", ..." if len(cluster.tenants) > _MOST_NAMES else "")
        return say(Reason.TENANT_NOT_NAMED, tenant=spec.tenant, named=named)
    fields = overridden(spec)
    return say(Reason.FIELDS_OVERRIDDEN, fields=", ".join(fields)) if fields else say(Reason.ACCEPTED)


def _size(job: JobView) -> Finding | None:
    facts = {"size": job.template_bytes, "limit": MOST_TEMPLATE_BYTES}
    return say(Reason.SPEC_TOO_LARGE, **facts) if job.template_too_large else None


def _template(spec: TrainingJobSpec) -> Finding | None:
    problem = template_problem(spec.template)
    if problem:
        return say(Reason.INVALID_SPEC, problem=problem)
    pod = spec.template["spec"]
    if not pod["containers"]:
        return say(Reason.NO_CONTAINER)
    first = pod["containers"][0]
    if not first.get("image"):
        return say(Reason.NO_IMAGE)
    if not first.get("command") and spec.managed is None:
        return say(Reason.NO_COMMAND)
    return say(Reason.NODE_NAME_SET) if pod.get("nodeName") else None


def _throughput(spec: TrainingJobSpec) -> Finding | None:
    problem = regex_error(spec)
    return say(Reason.INVALID_SPEC, problem=problem) if problem else None


def _sidecars(spec: TrainingJobSpec) -> Finding | None:
    pod = spec.template["spec"]
    try:
        sidecar_requests(pod)
        init_requests(pod)
        _quantities(pod)
    except ValueError as error:
        return say(Reason.INVALID_SPEC, problem=f"spec.template.spec: {error}")
    for container in [*pod["containers"][1:], *(pod.get("initContainers") or [])]:
        resources = container.get("resources") or {}
        if any(map(is_gpu, {**(resources.get("requests") or {}), **(resources.get("limits") or {})})):
            return say(Reason.SIDECAR_WANTS_GPU, container=container["name"])
    return None


def _quantities(node: Any) -> None:
    """Raises ValueError for an amount in a pod that does not parse.

    Some invalid amounts occupy the API server for minutes whenever it creates the pods.
    """
    if isinstance(node, list):
        for child in node:
            _quantities(child)
    elif isinstance(node, dict):
        amounts = [node[name] for name in ("sizeLimit", "divisor") if isinstance(node.get(name), str)]
        for kind in ("requests", "limits"):
            amounts += node[kind].values() if isinstance(node.get(kind), dict) else []
        for amount in amounts:
            parse_quantity(amount)
        _quantities(list(node.values()))


def _types(spec: TrainingJobSpec, cluster: ClusterView) -> Finding | None:
    if not cluster.by_type:
        return say(Reason.NO_GPU_NODES)
    if not cluster.allowed_types(spec.gpu_types):
        return say(Reason.UNKNOWN_GPU_TYPE, wanted=", ".join(spec.gpu_types), present=", ".join(cluster.by_type))
    return None


def _worker(spec: TrainingJobSpec, cluster: ClusterView) -> Finding | None:
    if spec.gpus_per_worker is None:
        return None
    kind, most = _largest(spec, cluster, lambda kind: cluster.whole_workers(kind, 1)[0])
    if most >= spec.gpus_per_worker:
        return None
    return say(Reason.WORKER_TOO_LARGE, wanted=spec.gpus_per_worker, most=most, gpu_type=kind)


def _gpus(spec: TrainingJobSpec, cluster: ClusterView) -> Finding | None:
    """All GPUs of a job are of one type. With `gpusPerWorker` a node holds whole workers only."""
    size = spec.gpus_per_worker or 1
    on_one_node = spec.placement == "Consolidate"

    def held(kind: str) -> int:
        most, together = cluster.whole_workers(kind, size)
        return most if on_one_node else together

    kind, most = _largest(spec, cluster, held)
    if most >= spec.gpus:
        return None
    where = "one node (spec.placement is Consolidate)" if on_one_node else "all nodes of one GPU type"
    return say(Reason.TOO_MANY_GPUS, wanted=spec.gpus, most=most, gpu_type=kind, where=where)


def _maxima(spec: TrainingJobSpec) -> Finding | None:
    most, workers = spec.resources.max.memory, max(1, spec.gpus // (spec.gpus_per_worker or spec.gpus))
    if most is None or byte_count(most) >= LEAST_MEMORY_BYTES * workers:
        return None
    least = format_bytes(LEAST_MEMORY_BYTES * workers)
    problem = f"spec.resources.max.memory is {most}: too little for a container to start, {workers} need {least}"
    return say(Reason.INVALID_SPEC, problem=problem)


def _minima(spec: TrainingJobSpec, cluster: ClusterView) -> Finding | None:
    for one in DIMENSIONS:
        least = getattr(spec.resources.min, one.spec_field)
        if least is None:
            continue
        kind, most = _largest(spec, cluster, partial(cluster.total, field=one.field))
        if one.parse(least) > most:
            facts: Mapping[str, object] = {"wanted": least, "most": one.format(most), "gpu_type": kind}
            return say(Reason.MIN_TOO_LARGE, resource=one.resource, **facts)
    return None


def _room_beside_training(spec: TrainingJobSpec, cluster: ClusterView) -> Finding | None:
    """Some node must leave room in a worker's proportional share, for the first container and for each init
    container."""
    share, finding = Amounts(), None
    for nodes in _allowed(spec, cluster).values():
        for node in nodes:
            gpus = min(spec.gpus, spec.gpus_per_worker or spec.gpus, node.gpus)
            own = node.amounts.part(gpus, node.gpus)._replace(gpus=gpus)
            small = too_small(spec.template, own)
            if small is None:
                return None
            if finding is None or own > share:
                share, finding = own, small
    return finding


def _matrix_for_some_type(spec: TrainingJobSpec, cluster: ClusterView) -> Finding | None:
    """On a type without a matrix a job gets its proportional share. A job that provides matrices needs one for some
    type."""
    if spec.profile.mode != "Provided":
        return None
    present = cluster.allowed_types(spec.gpu_types)
    if any(matrix.gpu_type in present for matrix in spec.profile.matrices):
        return None
    return say(Reason.MATRIX_MISSING, present=", ".join(present))


def _allowed(spec: TrainingJobSpec, cluster: ClusterView) -> dict[str, Nodes]:
    return {kind: cluster.by_type[kind] for kind in cluster.allowed_types(spec.gpu_types)}


def _largest(spec: TrainingJobSpec, cluster: ClusterView, measure: Callable[[str], int]) -> tuple[str, int]:
    """The allowed type with the greatest measure; of equals, the first by name."""
    amounts = {kind: measure(kind) for kind in cluster.allowed_types(spec.gpu_types)}
    kind = min(amounts, key=lambda name: (-amounts[name], name))
    return kind, amounts[kind]
