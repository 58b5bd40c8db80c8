"""Pods for training and for measuring, made from the user's pod template."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from synergy_api import names
from synergy_api.amounts import Amounts
from synergy_api.cluster.pods import sidecar_requests
from synergy_api.cluster.pools import worker_tolerations
from synergy_api.devices import device_class, is_gpu, own_resource
from synergy_operator.views.job import JobView
from synergy_operator.views.settings import WorkerSettings

LIBRARY_PATH: Final = "/opt/kube-synergy/lib"
"""Where training finds the library and the harness. The profiler image has them at the same path."""
_CLAIM: Final = "kube-synergy-gpus"
_LIBRARY_VOLUME: Final = "kube-synergy-lib"
_COPY_PATH: Final = "/kube-synergy-lib"
_SHARED_MEMORY_VOLUME: Final = "kube-synergy-shm"
_SHARED_MEMORY_PATH: Final = "/dev/shm"  # noqa: S108 - where processes share memory, not a place for files
_USER_PYTHONPATH: Final = "SYNERGY_USER_PYTHONPATH"
_LOST_NODE_SECONDS: Final = 60
_LOST_NODE_TOLERATIONS: Final = tuple(
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _LOST_NODE_SECONDS}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
)

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PodShare:
    """What one pod, with all of its containers, gets of a node."""

    node: str
    amounts: Amounts
    devices: int | None = None
    """Number of the device plugin's devices, if GPUs are shared."""
    resource: str = names.RESOURCE_GPU
    """The node's resource name for its GPUs or devices."""
    device_ids: tuple[str, ...] = ()
    """With DRA: the devices that its claim selects."""
    capacity: Mapping[str, str] = field(default_factory=dict)
    """With DRA: what its claim asks for of each device that jobs share."""

    @property
    def gpus(self) -> int:
        """Its GPUs."""
        return self.amounts.gpus


@dataclass(frozen=True, slots=True)
class Additions:
    """What a pod gets beyond the library and its share.

    `env` is for the first container. `mounts` are where that container sees `volumes`. `command` comes before its own.
    `fields` replace fields of the pod spec.
    """

    env: Mapping[str, str]
    volumes: Sequence[Mapping[str, Any]] = ()
    mounts: Sequence[Mapping[str, Any]] = ()
    command: Sequence[str] = ()
    claim: str = ""
    """Name of the pod's ResourceClaim, for nodes with DRA."""
    pod_fields: Mapping[str, str] = field(default_factory=dict)
    """Variables of the first container with a field of its pod, such as status.hostIP; those of `env` may name them."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    most_grace_seconds: int | None = None
    """The longest grace period that the pod may have. A user who deletes a pod gets the pod's own, so a longer one
    could hold its GPUs for as long."""


def owner_reference(job: JobView) -> Object:
    """The owner reference to the TrainingJob. The garbage collector deletes what carries it with the job."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "TrainingJob",
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def first_container_amounts(template: Mapping[str, Any], share: PodShare) -> Amounts:
    """What the pod's share leaves for the first container, the one that trains."""
    return share.amounts.minus(sidecar_requests(template["spec"])._replace(gpus=0))


def pod_metadata(template: Mapping[str, Any], labels: Mapping[str, str], share: PodShare) -> Object:
    """Labels and annotations of the template, with the operator's own.

    Keys of the operator's group are dropped from the template. The operator identifies pods by them, so a wrong value
    would hide the pod from it.
    """
    given = template.get("metadata") or {}
    devices = {names.ANNOTATION_DEVICES: str(share.devices)} if share.devices else {}
    if device_class(share.resource) is not None:
        devices[names.ANNOTATION_DEVICES] = str(share.devices or share.gpus)
    if own_resource(share.resource) is not None:
        devices[names.ANNOTATION_RESOURCE] = share.resource
    return {
        "labels": {**_not_ours(given.get("labels")), **labels},
        "annotations": {**_not_ours(given.get("annotations")), names.ANNOTATION_PLANNED_NODE: share.node, **devices},
    }


def _not_ours(given: Mapping[str, str] | None) -> dict[str, str]:
    return {name: value for name, value in (given or {}).items() if not name.startswith(f"{names.GROUP}/")}


def pod_spec(template: Mapping[str, Any], share: PodShare, settings: WorkerSettings, additions: Additions) -> Object:
    """The template's pod spec, pinned to the share's node, with the library mounted into the first container."""
    spec: Object = copy.deepcopy(template["spec"])
    spec["schedulerName"] = names.SCHEDULER_NAME
    spec["restartPolicy"] = "Never"
    spec.pop("resources", None)  # pod-level requests would override the plan's
    most, grace = additions.most_grace_seconds, spec.get("terminationGracePeriodSeconds")
    if most is not None and isinstance(grace, int) and grace > most:  # the API server refuses what is no number
        spec["terminationGracePeriodSeconds"] = most
    if settings.priority_class and not spec.get("priorityClassName"):
        spec["priorityClassName"] = settings.priority_class
    spec["tolerations"] = [
        *(spec.get("tolerations") or []),
        *map(dict, worker_tolerations(share.resource)),
        *_lost_node(spec),
    ]
    spec["affinity"] = pinned(spec.get("affinity") or {}, share.node)
    amounts = first_container_amounts(template, share)
    shared_memory = _shared_memory(spec["containers"][0], amounts)
    volumes = [_library_volume(), *shared_memory, *map(dict, additions.volumes)]
    spec["volumes"] = [*(spec.get("volumes") or []), *volumes]
    spec["initContainers"] = [_copy_library(settings), *(spec.get("initContainers") or [])]
    devices = {share.resource: str(share.devices or share.gpus)}
    if device_class(share.resource) is not None:
        devices = {}
        _claim_for(spec, additions.claim)
    _without_gpus(spec["containers"][0], share.resource)
    _train_in(spec["containers"][0], amounts, devices, additions)
    if shared_memory:
        spec["containers"][0]["volumeMounts"].append({"name": _SHARED_MEMORY_VOLUME, "mountPath": _SHARED_MEMORY_PATH})
    spec.update(additions.fields)
    return spec


def _claim_for(spec: Object, claim: str) -> None:
    """Give the claim's devices to the first container."""
    spec["resourceClaims"] = [*(spec.get("resourceClaims") or []), {"name": _CLAIM, "resourceClaimName": claim}]
    resources = spec["containers"][0].setdefault("resources", {})
    resources["claims"] = [*(resources.get("claims") or []), {"name": _CLAIM}]


def _train_in(container: Object, share: Amounts, devices: Mapping[str, str], additions: Additions) -> None:
    amounts = {**share.quantities, **devices}
    own = container.get("resources") or {}
    container["resources"] = {
        **own,
        "requests": {**(own.get("requests") or {}), **amounts},
        "limits": {**(own.get("limits") or {}), **amounts},
    }
    # A resize must never restart the training container, whatever the template says.
    container["resizePolicy"] = [{"resourceName": name, "restartPolicy": "NotRequired"} for name in share.quantities]
    container["env"] = _environment(container.get("env") or [], additions.env, additions.pod_fields)
    library = {"name": _LIBRARY_VOLUME, "mountPath": LIBRARY_PATH, "readOnly": True}
    container["volumeMounts"] = [*(container.get("volumeMounts") or []), library, *map(dict, additions.mounts)]
    if additions.command:
        container["command"] = [*additions.command, *container["command"]]


def _without_gpus(container: Object, resource: str) -> None:
    """Take the template's amounts of GPUs out: the node determines the name of its GPU resource."""
    for part in ("requests", "limits"):
        amounts = (container.get("resources") or {}).get(part) or {}
        for name in [name for name in amounts if name == resource or is_gpu(name)]:
            del amounts[name]


def _environment(
    given: Sequence[Mapping[str, Any]], ours: Mapping[str, str], pod_fields: Mapping[str, str]
) -> list[Object]:
    """The operator's variables come first: the template's can refer to them. PYTHONPATH keeps the template's value at
    the end."""
    kept = [dict(entry) for entry in given if entry["name"] not in ours and entry["name"] not in pod_fields]
    path = LIBRARY_PATH
    for entry in kept:
        if entry["name"] == "PYTHONPATH":
            entry["name"] = _USER_PYTHONPATH
            path = f"{LIBRARY_PATH}:$({_USER_PYTHONPATH})"
    fields = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": at}}} for name, at in pod_fields.items()]
    variables = [{"name": name, "value": value} for name, value in ours.items()]
    return [*fields, *variables, *kept, {"name": "PYTHONPATH", "value": path}]


def pinned(affinity: Mapping[str, Any], node: str) -> Object:
    """The template's affinity, narrowed to one node. Node selector terms are alternatives, so each gets the node."""
    pin = {"key": "metadata.name", "operator": "In", "values": [node]}
    pinned = copy.deepcopy(dict(affinity))
    pinned["nodeAffinity"] = of_nodes = pinned.get("nodeAffinity") or {}
    required = of_nodes.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms") or [{}]
    of_nodes["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [{**term, "matchFields": [*(term.get("matchFields") or []), pin]} for term in terms]
    }
    return pinned


def _lost_node(spec: Mapping[str, Any]) -> list[Object]:
    """Tolerations that give up a lost node's pods after one minute instead of the cluster's five.

    A toleration in the template takes precedence.
    """
    named = {toleration.get("key") for toleration in spec.get("tolerations") or []}
    return [dict(toleration) for toleration in _LOST_NODE_TOLERATIONS if toleration["key"] not in named]


def _library_volume() -> Object:
    return {"name": _LIBRARY_VOLUME, "emptyDir": {"sizeLimit": "64Mi"}}


def _shared_memory(container: Mapping[str, Any], amounts: Amounts) -> list[Object]:
    """The volume at /dev/shm, through which loader processes and NCCL pass their data; none if the template has one.

    Container runtimes give 64 MiB. The volume has half of the container's memory, the share that Linux gives /dev/shm
    of a machine. What is written there counts as the container's memory.
    """
    if any(
        str(mount.get("mountPath") or "").rstrip("/") == _SHARED_MEMORY_PATH
        for mount in container.get("volumeMounts") or []
    ):
        return []
    size = {"medium": "Memory", "sizeLimit": str(amounts.memory_bytes // 2)}
    return [{"name": _SHARED_MEMORY_VOLUME, "emptyDir": size}]


def _copy_library(settings: WorkerSettings) -> Object:
    amounts = {"cpu": "50m", "memory": "32Mi"}
    return {
        "name": "kube-synergy-lib",
        "image": settings.profiler_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["cp", "-R", f"{LIBRARY_PATH}/.", f"{_COPY_PATH}/"],
        "resources": {"requests": amounts, "limits": amounts},
        "volumeMounts": [{"name": _LIBRARY_VOLUME, "mountPath": _COPY_PATH}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
