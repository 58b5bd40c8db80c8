"""Kueue: ClusterQueues and Cohorts are Tenants, LocalQueues say which namespaces belong to them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from synergy_api.cluster.pools import LABEL_PRODUCT
from synergy_api.names import RESOURCE_GPU
from synergy_view.moving.words import NOT_GPUS, Choices, Draft, Fields, Object, Remark, whole_gpus

GROUP: Final = "kueue.x-k8s.io"
_KNOWN: Final = {
    "preemption": "borrowed GPUs always go back at a round's end to tenants below their guarantee, from the largest "
    "borrower; who yields within a tenant is the policy's choice",
    "flavorFungibility": "a job lists the GPU types that it may use (spec.gpuTypes), and the policy chooses",
    "queueingStrategy": "the SchedulingPolicy orders jobs; a job that does not fit does not block others",
    "stopPolicy": "set spec.suspend of the tenant's TrainingJobs to hold them",
    "admissionChecks": "has no counterpart",
    "namespaceSelector": "its LocalQueues say which namespaces belong to the Tenant",
}
_USUAL: Final = {
    "queueingStrategy": "BestEffortFIFO",
    "stopPolicy": "None",
    "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "TryNextFlavor"},
}


class Kueue:
    """The objects of one Kueue installation."""

    def __init__(self, objects: Iterable[Object], choices: Choices) -> None:
        by_kind: dict[str, list[Object]] = {}
        for item in objects:
            by_kind.setdefault(str(item["kind"]), []).append(item)
        self._queues = by_kind.get("ClusterQueue", [])
        self._cohorts = {_name(item): item for item in by_kind.get("Cohort", [])}
        self._choices = choices
        self._flavors = {_name(item): item for item in by_kind.get("ResourceFlavor", [])}
        self._namespaces: dict[str, list[str]] = {}
        for item in by_kind.get("LocalQueue", []):
            queue = str((item.get("spec") or {}).get("clusterQueue", ""))
            self._namespaces.setdefault(queue, []).append(str(item["metadata"].get("namespace", "default")))
        self._priorities = by_kind.get("WorkloadPriorityClass", [])
        self._extra: dict[str, dict[str, int]] = {}

    def drafts(self) -> list[Draft]:
        """A Tenant for each ClusterQueue and each Cohort, parents first."""
        queues = [self._queue(item) for item in self._queues]
        names = {draft.spec["parent"] for draft in queues if "parent" in draft.spec}
        cohorts: dict[str, Draft] = {}
        pending = sorted(names | {self._tenant_of(name) for name in self._cohorts})
        while pending:
            name = pending.pop()
            if name not in cohorts:
                cohorts[name] = self._cohort(name)
                pending += [cohorts[name].spec["parent"]] if "parent" in cohorts[name].spec else []
        for root in sorted(name for name, draft in cohorts.items() if "parent" not in draft.spec):
            self._close(root, cohorts, queues, set())
        return [*(cohorts[name] for name in sorted(cohorts)), *queues]

    def remarks(self) -> list[Remark]:
        """What is found of objects that make no Tenant."""
        known = {_name(item) for item in self._queues}
        lost = sorted(queue for queue in self._namespaces if queue not in known)
        return [
            *(
                Remark(f"WorkloadPriorityClass {_name(item)}", "value", "jobs name a PriorityClass of Kubernetes: make "
                       "one of this value, and let the Tenant's caps.maxPriority be as large")
                for item in self._priorities
            ),
            *(Remark(f"LocalQueue of {queue}", "spec.clusterQueue", f"there is no ClusterQueue {queue}; add it to the "
                     "input") for queue in lost),
        ]  # fmt: skip

    def _tenant_of(self, cohort: str) -> str:
        """A cohort's Tenant; a ClusterQueue may have the same name."""
        return f"{cohort}-cohort" if any(_name(item) == cohort for item in self._queues) else cohort

    def _queue(self, item: Object) -> Draft:
        name = _name(item)
        draft = Draft(name, f"ClusterQueue {name}")
        fields = Fields(item.get("spec") or {}, "spec", draft.source)
        parent = fields.take("cohortName") or fields.take("cohort")
        if parent:
            draft.spec["parent"] = self._tenant_of(str(parent))
        self._quotas(fields, draft)
        if not parent:
            self._no_neighbours(draft)
        weight = fields.within("fairSharing").take("weight")
        if weight is not None:
            draft.set_weight(weight, "spec.fairSharing.weight")
        namespaces = [*self._namespaces.get(name, ()), *self._choices.namespaces.get(name, ())]
        selector = fields.take("namespaceSelector")
        if not namespaces and selector:
            draft.spec["namespaceSelector"] = selector
        else:
            draft.set_namespaces(namespaces, link="no LocalQueue names the ClusterQueue")
        fields.tell_rest(draft, _KNOWN, _USUAL)
        return draft

    def _cohort(self, tenant: str) -> Draft:
        cohort = tenant if tenant in self._cohorts else tenant.removesuffix("-cohort")
        draft = Draft(tenant, f"Cohort {cohort}")
        item = self._cohorts.get(cohort)
        if item is None:
            return draft
        fields = Fields(item.get("spec") or {}, "spec", draft.source)
        parent = fields.take("parentName") or fields.take("parent")
        if parent:
            draft.spec["parent"] = self._tenant_of(str(parent))
        self._quotas(fields, draft)
        self._extra[tenant] = draft.spec.pop("guarantee", {})
        weight = fields.within("fairSharing").take("weight")
        if weight is not None:
            draft.set_weight(weight, "spec.fairSharing.weight")
        fields.tell_rest(draft, _KNOWN, _USUAL)
        return draft

    def _quotas(self, fields: Fields, draft: Draft) -> None:
        for group in fields.each("resourceGroups"):
            for flavor in group.each("flavors"):
                gpu_type = None
                for quota in flavor.each("resources"):
                    resource = quota.take("name")
                    if resource != RESOURCE_GPU:
                        draft.remark(quota.path("name"), f"{resource}: {NOT_GPUS}")
                        continue
                    gpu_type = gpu_type or self._type_of(str(flavor.take("name")), draft, flavor.path("name"))
                    for field, place in (
                        ("nominalQuota", "guarantee"), ("borrowingLimit", "borrowing"), ("lendingLimit", "lending"),
                    ):  # fmt: skip
                        value = quota.take(field)
                        if value is not None:
                            draft.set_gpus(place, gpu_type, whole_gpus(value, draft, quota.path(field)))

    def _type_of(self, flavor: str, draft: Draft, path: str) -> str:
        """The flavor's GPU type: as chosen, as its ResourceFlavor's node labels say, else its name."""
        chosen = self._choices.types.get(flavor)
        spec = Fields(self._flavors.get(flavor, {}).get("spec") or {}, "spec", f"ResourceFlavor {flavor}")
        gpu_type = chosen or spec.within("nodeLabels").take(LABEL_PRODUCT)
        if gpu_type:
            return str(gpu_type)
        draft.remark(path, f"the flavor's name is taken as the GPU type; if nodes call it otherwise, give --gpu-type "
                     f"{flavor}=TYPE, or write a GPUPool with gpuType {flavor}")  # fmt: skip
        return flavor

    def _close(self, name: str, cohorts: Mapping[str, Draft], queues: Iterable[Draft], seen: set[str]) -> None:
        """Write what a cohort has in all: its children's quota and its own; Kueue counts its own on top of theirs."""
        if name in seen:
            return
        seen.add(name)
        draft = cohorts[name]
        children = [one for one in (*cohorts.values(), *queues) if one.spec.get("parent") == name]
        for child in children:
            if child.name in cohorts and cohorts[child.name] is child:
                self._close(child.name, cohorts, queues, seen)
        total: dict[str, int] = dict(self._extra.get(name, {}))
        for child in children:
            for gpu_type, gpus in child.spec.get("guarantee", {}).items():
                total[gpu_type] = total.get(gpu_type, 0) + gpus
        if total:
            draft.spec["guarantee"] = dict(sorted(total.items()))
        if "parent" not in draft.spec:
            self._no_neighbours(draft)

    @staticmethod
    def _no_neighbours(draft: Draft) -> None:
        """In Kueue a queue without cohort, or a whole tree, neither borrows from others nor lends to them."""
        guarantee = draft.spec.get("guarantee")
        if guarantee:
            draft.spec["limit"] = dict(guarantee)
            draft.spec["lending"] = dict.fromkeys(guarantee, 0)
            draft.spec.pop("borrowing", None)
            draft.remark(
                "", "as in Kueue, nothing is shared with other trees; remove spec.limit and spec.lending to share"
            )


def cluster_queues(objects: Iterable[Object]) -> dict[tuple[str, str], str]:
    """The ClusterQueue of each LocalQueue, by namespace and name."""
    return {
        (str(item["metadata"].get("namespace", "default")), _name(item)): str(
            (item.get("spec") or {}).get("clusterQueue", "")
        )
        for item in objects
        if item["kind"] == "LocalQueue"
    }


def _name(item: Object) -> str:
    metadata: Any = item["metadata"]
    return str(metadata["name"])
