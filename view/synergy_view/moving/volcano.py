"""Volcano: each Queue is a Tenant."""

from typing import Final

from synergy_view.moving.words import Choices, Draft, Fields, Object, gpu_type_of_all, resources, whole_gpus

GROUP: Final = "scheduling.volcano.sh"
_ROOT: Final = "root"
_KNOWN: Final = {
    "priority": "tenants have no order among one another: guarantees and weights divide the GPUs",
    "affinity": "write a GPUPool for these nodes, and name its GPU type in the Tenant and in spec.gpuTypes of jobs",
    "dequeueStrategy": "the SchedulingPolicy orders jobs; a job that does not fit does not block others",
    "extendClusters": "kube-synergy plans one cluster",
}


def drafts(queues: list[Object], choices: Choices) -> list[Draft]:
    """A Tenant for each Queue but the root, which stands for the whole cluster."""
    parents = {str((item.get("spec") or {}).get("parent", "")) for item in queues}
    return [
        _queue(item, choices, leaf=item["metadata"]["name"] not in parents)
        for item in queues
        if item["metadata"]["name"] != _ROOT
    ]


def _queue(item: Object, choices: Choices, *, leaf: bool) -> Draft:
    name = str(item["metadata"]["name"])
    draft = Draft(name, f"Queue {name}")
    fields = Fields(item.get("spec") or {}, "spec", draft.source)
    parent = fields.take("parent")
    if parent and parent != _ROOT:
        draft.spec["parent"] = str(parent)
    limit = resources(fields.within("capability"), draft)
    deserved = resources(fields.within("deserved"), draft)
    reserved = resources(fields.within("guarantee").within("resource"), draft)
    if any(value is not None for value in (limit, deserved, reserved)):
        gpu_type = gpu_type_of_all(choices, draft, "spec")
        _set_gpus(draft, gpu_type, (limit, deserved, reserved))
    weight = fields.take("weight")
    if weight is not None:
        draft.set_weight(weight, "spec.weight")
    if weight is not None and deserved is None:
        draft.remark("spec.weight", "divides the GPUs under the policy hierarchical; without spec.deserved the Tenant "
                     "has no guarantee")  # fmt: skip
    if fields.take("reclaimable") is False:
        draft.remark("spec.reclaimable", "what a Tenant borrows can always be taken back; jobs that must not leave "
                     "have preemption Never, within caps.maxNeverPreemptedGPUs")  # fmt: skip
    if leaf:
        draft.set_namespaces(
            choices.namespaces.get(name, ()), link="jobs name a Volcano queue, a Tenant has namespaces"
        )
    fields.tell_rest(draft, _KNOWN, {"dequeueStrategy": "traverse"})
    return draft


def _set_gpus(draft: Draft, gpu_type: str, given: tuple[object, object, object]) -> None:
    """`deserved` is what can be taken back, `guarantee` the part of it that is never lent."""
    limit, deserved, reserved = given
    kept = 0 if reserved is None else whole_gpus(reserved, draft, "spec.guarantee.resource")
    guarantee = max(kept, 0 if deserved is None else whole_gpus(deserved, draft, "spec.deserved"))
    if guarantee:
        draft.set_gpus("guarantee", gpu_type, guarantee)
    if kept:
        draft.set_gpus("lending", gpu_type, guarantee - kept)
    if limit is not None:
        draft.set_gpus("limit", gpu_type, whole_gpus(limit, draft, "spec.capability"))
