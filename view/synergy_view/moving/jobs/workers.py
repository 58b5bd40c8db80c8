"""From a pod template with GPUs to `spec.gpus`, `spec.template` and what belongs to them."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from synergy_api.cluster.pools import LABEL_PRODUCT
from synergy_api.names import RESOURCE_GPU, RESOURCE_SHARED_GPU
from synergy_api.quantity import byte_count, cpu_millis, format_bytes, format_cpu, whole_count
from synergy_view.moving.jobs.words import JobDraft, Workers, own_words

_FRACTIONS: Final = ("gpu-fraction", "gpu-memory")
"""Annotations of KAI: a pod shares one GPU."""
_VOLCANO_SHARES: Final = ("volcano.sh/gpu-number", "volcano.sh/vgpu-number")
_TOPOLOGY: Final = "kueue.x-k8s.io/podset-"
_OURS: Final = ("schedulerName", "nodeName", "priority", "schedulingGates", "hostname", "subdomain")


def gpus_of(template: Mapping[str, Any]) -> int:
    """GPUs that a pod of the template asks for: those of its first container, a part of one counts as one.

    Raises ValueError for an amount that is no whole number.
    """
    asked = _asked(template)
    gpus = next((asked[name] for name in (RESOURCE_GPU, RESOURCE_SHARED_GPU, *_VOLCANO_SHARES) if name in asked), None)
    if gpus is not None:
        return whole_count(gpus)
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    return 1 if any(name in annotations for name in _FRACTIONS) else 0


def set_workers(draft: JobDraft, workers: Workers) -> None:
    """GPUs, template and least amounts of CPU and memory. The template has GPUs."""
    each = gpus_of(workers.template)
    draft.spec["gpus"] = each * workers.count
    if workers.count > 1:
        draft.spec["gpusPerWorker"] = each
    _set_shared(draft, workers, each)
    template = deepcopy(dict(workers.template))
    pod = template["spec"]
    _set_least(draft, workers, pod["containers"][0])
    _set_types(draft, pod, workers.path)
    _drop_fields(draft, template, workers.path)
    first = pod["containers"][0]
    if not first.get("command"):
        draft.remark(f"{workers.path}.spec.containers[0].command", "is required: the API server refuses the "
                     "TrainingJob until you write the command that the image starts")  # fmt: skip
    metadata = {part: own_words((template.get("metadata") or {}).get(part) or {}) for part in ("labels", "annotations")}
    metadata = {part: words for part, words in metadata.items() if words}
    draft.spec["template"] = {**({"metadata": metadata} if metadata else {}), "spec": pod}


def _asked(template: Mapping[str, Any]) -> dict[str, Any]:
    resources = template["spec"]["containers"][0].get("resources") or {}
    return {**(resources.get("requests") or {}), **(resources.get("limits") or {})}


def _set_shared(draft: JobDraft, workers: Workers, each: int) -> None:
    """A part of a GPU: the job may share its GPU, once it is known what it does to one."""
    annotations = (workers.template.get("metadata") or {}).get("annotations") or {}
    asked = _asked(workers.template)
    part = next((f"{name} {annotations[name]}" for name in _FRACTIONS if name in annotations), "")
    part = part or next((name for name in (RESOURCE_SHARED_GPU, *_VOLCANO_SHARES) if name in asked), "")
    if not part:
        return
    if each * workers.count == 1:
        draft.spec["sharing"] = {"allowed": True}
        told = ("spec.sharing.allowed lets the plan choose partners for its GPU, once the job may be preempted and "
                "spec.sharing.usage is known")  # fmt: skip
    else:
        told = "only jobs of one GPU share it, this one gets whole GPUs"
    draft.remark(workers.path, f"{part}: a fixed part of a GPU has no counterpart; {told}")


def _set_least(draft: JobDraft, workers: Workers, first: dict[str, Any]) -> None:
    """What the first container asked for is the least that the plan gives; its GPUs and amounts leave the template."""
    resources = first.pop("resources", None) or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    least = {}
    try:
        if "cpu" in asked:
            least["cpu"] = format_cpu(cpu_millis(asked["cpu"]) * workers.count)
        if "memory" in asked:
            least["memory"] = format_bytes(byte_count(asked["memory"]) * workers.count)
    except ValueError as error:
        raise ValueError(f"{draft.source}: {workers.path}.spec.containers[0].resources: {error}") from error
    if least:
        draft.spec["resources"] = {"min": least}
        draft.remark(f"{workers.path}.spec.containers[0].resources", "what it asked for is the least that the plan "
                     "gives (spec.resources.min, all workers together); lower it to let the plan choose")  # fmt: skip
    kept: dict[str, Any] = {"claims": resources["claims"]} if resources.get("claims") else {}
    for part in ("requests", "limits"):
        others = {name: amount for name, amount in (resources.get(part) or {}).items() if not _planned(name)}
        if others:
            kept[part] = others
    if kept:
        first["resources"] = kept


def _planned(resource: str) -> bool:
    return resource in ("cpu", "memory", RESOURCE_GPU, RESOURCE_SHARED_GPU) or resource.startswith("volcano.sh/")


def _set_types(draft: JobDraft, pod: dict[str, Any], path: str) -> None:
    """A GPU product that the template selects is the job's GPU type."""
    selector = dict(pod.get("nodeSelector") or {})
    product = selector.pop(LABEL_PRODUCT, None)
    if product is None:
        return
    draft.spec["gpuTypes"] = [str(product)]
    draft.remark(f"{path}.spec.nodeSelector", f"{LABEL_PRODUCT} is spec.gpuTypes now; if a GPUPool names the type "
                 "otherwise, write that name")  # fmt: skip
    if selector:
        pod["nodeSelector"] = selector
    else:
        del pod["nodeSelector"]


def _drop_fields(draft: JobDraft, template: Mapping[str, Any], path: str) -> None:
    pod = template["spec"]
    for name in _OURS:
        pod.pop(name, None)
    if pod.pop("restartPolicy", "Never") == "OnFailure":
        draft.remark(f"{path}.spec.restartPolicy", "a failed worker ends the run, and all workers start again together")
    # an API server has written these
    for name, usual in (("dnsPolicy", "ClusterFirst"), ("terminationGracePeriodSeconds", 30), ("securityContext", {})):
        if pod.get(name) == usual:
            del pod[name]
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    if any(name.startswith(_TOPOLOGY) for name in annotations):
        draft.remark(f"{path}.metadata.annotations", "topology: spec.topology of a GPUPool has the levels, and the "
                     "plan places gangs by them; a level for one job has no counterpart")  # fmt: skip
