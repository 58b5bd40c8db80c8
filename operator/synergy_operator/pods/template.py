"""From the user's pod template to the pods that kube-synergy makes of it, for training and for measuring alike."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from synergy_api import names
from synergy_api.pods import Amounts, sidecar_requests
from synergy_api.pools import WORKER_TOLERATIONS
from synergy_api.quantity import format_bytes, format_cpu
from synergy_operator.views.job import JobView
from synergy_operator.views.settings import WorkerSettings

LIBRARY_PATH: Final = "/opt/kube-synergy/lib"
"""Where training finds the library and the harness; the profiler image carries them at the same path."""
_LIBRARY_VOLUME: Final = "kube-synergy-lib"
_COPY_PATH: Final = "/kube-synergy-lib"
_USER_PYTHONPATH: Final = "SYNERGY_USER_PYTHONPATH"
_LOST_NODE_SECONDS: Final = 60
_LOST_NODE_TOLERATIONS: Final = tuple(
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _LOST_NODE_SECONDS}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
)

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PodShare:
    """What one pod, all its containers together, gets of a node: GPUs, milli-CPU, bytes."""

    node: str
    gpus: int
    cpu_millis: int
    memory_bytes: int
    devices: int | None = None
    """Where GPUs are shared: how many of the device plugin's devices."""
    resource: str = names.RESOURCE_GPU
    """What the node calls its GPUs or devices."""

    @property
    def amounts(self) -> Amounts:
        """All of it together."""
        return Amounts(self.gpus, self.cpu_millis, self.memory_bytes)


@dataclass(frozen=True, slots=True)
class Additions:
    """What a pod gets beyond library and place: variables of the first container, volumes with where it sees them,
    and a command to run instead of its own."""

    env: Mapping[str, str]
    volumes: Sequence[Mapping[str, Any]] = ()
    mounts: Sequence[Mapping[str, Any]] = ()
    command: Sequence[str] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)


def owner_reference(job: JobView) -> Object:
    """Deleting the TrainingJob deletes what carries this."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "TrainingJob",
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def first_container_amounts(template: Mapping[str, Any], place: PodShare) -> Amounts:
    """What is left of the pod's place for the container that trains."""
    return place.amounts.minus(sidecar_requests(template["spec"])._replace(gpus=0))


def pod_metadata(template: Mapping[str, Any], labels: Mapping[str, str], place: PodShare) -> Object:
    """Labels and annotations of the template, with ours. Names of ours that the template gives are not used: a pod is
    read by them, and one that says something else would be nobody's."""
    given = template.get("metadata") or {}
    devices = {names.ANNOTATION_DEVICES: str(place.devices)} if place.devices else {}
    return {
        "labels": {**_not_ours(given.get("labels")), **labels},
        "annotations": {**_not_ours(given.get("annotations")), names.ANNOTATION_PLANNED_NODE: place.node, **devices},
    }


def _not_ours(given: Mapping[str, str] | None) -> dict[str, str]:
    return {name: value for name, value in (given or {}).items() if not name.startswith(f"{names.GROUP}/")}


def pod_spec(template: Mapping[str, Any], place: PodShare, settings: WorkerSettings, additions: Additions) -> Object:
    """The pod spec: the template's, pinned to the place, with the library in reach of the first container."""
    spec: Object = copy.deepcopy(template["spec"])
    spec["schedulerName"] = names.SCHEDULER_NAME
    spec["restartPolicy"] = "Never"
    spec.pop("resources", None)  # pod-level requests would stand in place of the plan's
    if settings.priority_class and not spec.get("priorityClassName"):
        spec["priorityClassName"] = settings.priority_class
    spec["tolerations"] = [*(spec.get("tolerations") or []), *map(dict, WORKER_TOLERATIONS), *_lost_node(spec)]
    spec["affinity"] = _pinned(spec.get("affinity") or {}, place.node)
    spec["volumes"] = [*(spec.get("volumes") or []), _library_volume(), *map(dict, additions.volumes)]
    spec["initContainers"] = [_copy_library(settings), *(spec.get("initContainers") or [])]
    devices = {place.resource: str(place.devices or place.gpus)}
    _train_in(spec["containers"][0], first_container_amounts(template, place), devices, additions)
    spec.update(additions.fields)
    return spec


def _train_in(container: Object, share: Amounts, devices: Mapping[str, str], additions: Additions) -> None:
    amounts = {"cpu": format_cpu(share.cpu_millis), "memory": format_bytes(share.memory_bytes), **devices}
    own = container.get("resources") or {}
    container["resources"] = {
        **own,
        "requests": {**_without_gpus(own.get("requests")), **amounts},
        "limits": {**_without_gpus(own.get("limits")), **amounts},
    }
    # A resize must never restart what trains, whatever the template says.
    container["resizePolicy"] = [{"resourceName": name, "restartPolicy": "NotRequired"} for name in ("cpu", "memory")]
    container["env"] = _environment(container.get("env") or [], additions.env)
    library = {"name": _LIBRARY_VOLUME, "mountPath": LIBRARY_PATH, "readOnly": True}
    container["volumeMounts"] = [*(container.get("volumeMounts") or []), library, *map(dict, additions.mounts)]
    if additions.command:
        container["command"] = [*additions.command, *container["command"]]


def _without_gpus(amounts: Mapping[str, Any] | None) -> Object:
    """What the template asks for beside GPUs: what those are called is the node's to say."""
    return {name: amount for name, amount in (amounts or {}).items() if name not in names.GPU_RESOURCES}


def _environment(given: Sequence[Mapping[str, Any]], ours: Mapping[str, str]) -> list[Object]:
    """Ours first, so that the template's variables can refer to them; the template's PYTHONPATH stays behind ours."""
    kept = [dict(entry) for entry in given if entry["name"] not in ours]
    path = LIBRARY_PATH
    for entry in kept:
        if entry["name"] == "PYTHONPATH":
            entry["name"] = _USER_PYTHONPATH
            path = f"{LIBRARY_PATH}:$({_USER_PYTHONPATH})"
    variables = [{"name": name, "value": value} for name, value in ours.items()]
    return [*variables, *kept, {"name": "PYTHONPATH", "value": path}]


def _pinned(affinity: Mapping[str, Any], node: str) -> Object:
    """The template's affinity, narrowed to one node. Terms are alternatives, so each gets the node."""
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
    """A lost node's pods are given up after a minute instead of the cluster's five, unless the template says when."""
    named = {toleration.get("key") for toleration in spec.get("tolerations") or []}
    return [dict(toleration) for toleration in _LOST_NODE_TOLERATIONS if toleration["key"] not in named]


def _library_volume() -> Object:
    return {"name": _LIBRARY_VOLUME, "emptyDir": {"sizeLimit": "64Mi"}}


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
