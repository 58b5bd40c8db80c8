"""Objects of Kueue, Volcano and KAI as Tenants and TrainingJobs, with a remark about each line that is lost or changed.

Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import ValidationError

from synergy_api.resources.tenant import TenantSpec
from synergy_view.moving import kai, kueue, volcano
from synergy_view.moving.jobs.translate import finished as finished_job
from synergy_view.moving.jobs.translate import group_of, is_job, job_drafts
from synergy_view.moving.jobs.words import JobDraft
from synergy_view.moving.words import Choices, Draft, Object, Remark

_LONGEST_NAME: Final = 63


@dataclass(frozen=True)
class Translation:
    """Tenants and TrainingJobs, each with the remarks about its source, and remarks about objects that make neither."""

    tenants: tuple[tuple[Object, tuple[Remark, ...]], ...]
    others: tuple[Remark, ...] = ()
    jobs: tuple[tuple[Object, tuple[Remark, ...]], ...] = ()


def translate(objects: Iterable[Object], choices: Choices) -> Translation:
    """Tenants and TrainingJobs. Raises ValueError naming the object that cannot be read, or the choice that is
    missing."""
    listed = list(objects)
    for item in listed:
        _check(item)
    others: list[Remark] = []
    jobs = job_drafts([item for item in listed if is_job(item)], others)
    by_group: dict[str, list[Object]] = {}
    for item in listed:
        if not is_job(item):
            by_group.setdefault(group_of(item), []).append(item)
    cluster_queues = kueue.cluster_queues(by_group.get(kueue.GROUP, []))
    drafts = _tenants(by_group, _with_namespaces(choices, jobs), others)
    for rest in by_group.values():
        others += [Remark(f"{item['kind']} {item['metadata']['name']}", "", "is not translated") for item in rest]
    tenants = [draft for draft in drafts if _fits(draft, others)]
    by_name = {draft.name: draft for draft in tenants}
    for job in jobs:
        _set_tenant(job, cluster_queues, by_name)
    for name, draft in by_name.items():
        _set_cap(draft, sum(job.spec["gpus"] for job in jobs if job.spec.get("tenant") == name))
    return Translation(
        tuple(_finished(draft) for draft in tenants), tuple(others), tuple(finished_job(job) for job in jobs)
    )


def _tenants(by_group: dict[str, list[Object]], choices: Choices, others: list[Remark]) -> list[Draft]:
    """The Tenants of all queues. What is translated leaves `by_group`."""
    found = kueue.Kueue(by_group.pop(kueue.GROUP, []), choices)
    drafts = found.drafts()
    others += found.remarks()
    for module in (volcano, kai):
        listed = by_group.pop(module.GROUP, [])
        drafts += module.drafts([item for item in listed if item["kind"] == "Queue"], choices)
        by_group.setdefault(module.GROUP, []).extend(item for item in listed if item["kind"] != "Queue")
    return drafts


def _with_namespaces(choices: Choices, jobs: Iterable[JobDraft]) -> Choices:
    """The namespaces of each queue, with those of the jobs that name it."""
    namespaces = dict(choices.namespaces)
    for job in jobs:
        if job.queue and job.namespace not in namespaces.get(job.queue, ()):
            namespaces[job.queue] = (*namespaces.get(job.queue, ()), job.namespace)
    return replace(choices, namespaces=namespaces)


def _set_tenant(job: JobDraft, cluster_queues: Mapping[tuple[str, str], str], tenants: Mapping[str, Draft]) -> None:
    """The Tenant of the job's queue, if the input has it."""
    if not job.queue:
        return
    name = cluster_queues.get((job.namespace, job.queue), job.queue)
    tenant = tenants.get(name)
    if tenant is not None and job.namespace in tenant.spec.get("namespaces", ()):
        job.spec["tenant"] = name
    else:
        job.remark("", f"was in queue {job.queue}: its namespace {job.namespace} decides whose it is now; name the "
                   "Tenant in spec.tenant if several have that namespace")  # fmt: skip


def _set_cap(tenant: Draft, gpus: int) -> None:
    """Let the tenant's translated jobs keep their GPUs until they are done, as its guarantee or these jobs are."""
    if gpus:
        most = max(gpus, sum(tenant.spec.get("guarantee", {}).values()))
        tenant.spec["caps"] = {"maxNeverPreemptedGPUs": most}
        tenant.remark("", f"caps.maxNeverPreemptedGPUs {most} lets its jobs have preemption Never; lower it once they "
                      "save checkpoints")  # fmt: skip


def _check(item: Any) -> None:
    """Raises ValueError if the object is no manifest. Only a job may have its name generated."""
    given = item.get("metadata") if isinstance(item, dict) else None
    metadata = given if isinstance(given, dict) else {}
    named = metadata.get("name") or (metadata.get("generateName") and is_job(item))
    names = (metadata.get(field) for field in ("name", "generateName", "namespace"))
    texts = all(isinstance(one, str | None) for one in (*names, item.get("kind") if named else None))
    if not named or not item.get("kind") or not texts:
        raise ValueError("an object without kind or metadata.name; give Kubernetes manifests")
    if not isinstance(item.get("spec") or {}, dict):
        raise ValueError(f"{item['kind']} {metadata.get('name')}: spec: must be an object")


def _fits(draft: Draft, others: list[Remark]) -> bool:
    """Whether a Tenant can have the name. If not, what was to be said of it is said without one."""
    if len(draft.name) <= _LONGEST_NAME:
        return True
    others += [*draft.remarks, Remark(draft.source, "metadata.name", f"a Tenant's name has {_LONGEST_NAME} characters "
                                      "at the most: rename it")]  # fmt: skip
    return False


def _finished(draft: Draft) -> tuple[Object, tuple[Remark, ...]]:
    for gpu_type, gpus in draft.spec.get("guarantee", {}).items():
        limit = draft.gpus("limit", gpu_type)
        if limit is not None and gpus > limit:
            draft.remark("", f"the guarantee of {gpus} {gpu_type} is above the limit and lowered to {limit}")
            draft.spec["guarantee"] = {**draft.spec["guarantee"], gpu_type: limit}
    try:
        TenantSpec.model_validate(draft.spec)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{draft.source}: the Tenant's spec.{path}: {first['msg']}") from error
    return draft.manifest(), tuple(draft.remarks)
