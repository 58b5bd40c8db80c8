"""KAI Scheduler: each Queue is a Tenant."""

from collections.abc import Mapping
from typing import Final

from synergy_view.moving.words import NOT_GPUS, Choices, Draft, Fields, Object, gpu_type_of_all, whole_gpus

GROUP: Final = "scheduling.run.ai"
_UNBOUNDED: Final = -1
_MINIMUM_RUN: Final = "set spec.preemption.minimumRunSeconds of the SchedulingPolicy, for all tenants"
_KNOWN: Final = {
    "displayName": "a Tenant has its name only",
    "priority": "tenants have no order among one another: guarantees and weights divide the GPUs",
    "preemptMinRuntime": _MINIMUM_RUN,
    "reclaimMinRuntime": _MINIMUM_RUN,
}


def drafts(queues: list[Object], choices: Choices) -> list[Draft]:
    """A Tenant for each Queue."""
    parents = {str((item.get("spec") or {}).get("parentQueue", "")) for item in queues}
    return [_queue(item, choices, leaf=item["metadata"]["name"] not in parents) for item in queues]


def _queue(item: Object, choices: Choices, *, leaf: bool) -> Draft:
    name = str(item["metadata"]["name"])
    draft = Draft(name, f"Queue {name}")
    fields = Fields(item.get("spec") or {}, "spec", draft.source)
    parent = fields.take("parentQueue")
    if parent:
        draft.spec["parent"] = str(parent)
    resources = fields.within("resources")
    gpu = resources.within("gpu")
    _set_gpus(draft, gpu, choices, leaf=leaf)
    gpu.tell_rest(draft, {})
    resources.tell_rest(draft, dict.fromkeys(("cpu", "memory"), NOT_GPUS))
    if leaf:
        draft.set_namespaces(choices.namespaces.get(name, ()), link="pods name a KAI queue, a Tenant has namespaces")
    fields.tell_rest(draft, _KNOWN)
    return draft


def _set_gpus(draft: Draft, gpu: Fields, choices: Choices, *, leaf: bool) -> None:
    path = "spec.resources.gpu"
    quota = draft.amount(gpu.take("quota", 0), f"{path}.quota")
    limit = draft.amount(gpu.take("limit", 0), f"{path}.limit")
    weight = draft.amount(gpu.take("overQuotaWeight", 1), f"{path}.overQuotaWeight")
    if weight > 0:
        draft.set_weight(weight, f"{path}.overQuotaWeight")
    unlimited = quota == _UNBOUNDED
    if unlimited and leaf:
        draft.remark(f"{path}.quota", "a guarantee of everything cannot be kept: the Tenant has none, and borrows")
    guarantee = 0 if unlimited else whole_gpus(quota, draft, f"{path}.quota")
    most: int | None = None
    if limit == 0 and not unlimited:
        draft.remark(f"{path}.limit", "0 or absent lets a KAI queue have nothing beyond its quota")
        most = guarantee
    elif limit not in (0, _UNBOUNDED):
        most = max(guarantee, whole_gpus(limit, draft, f"{path}.limit"))
    _write(draft, choices, {"guarantee": guarantee or None, "limit": most, "borrowing": None if weight > 0 else 0})


def _write(draft: Draft, choices: Choices, gpus: Mapping[str, int | None]) -> None:
    """The amounts that there are, under the GPU type that was chosen."""
    for place, count in gpus.items():
        if count is not None:
            draft.set_gpus(place, gpu_type_of_all(choices, draft, "spec.resources.gpu"), count)
