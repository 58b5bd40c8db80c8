"""PyTorchJobs of Kubeflow: Master and Worker replicas are equal workers."""

from typing import Any, Final

from synergy_view.moving.jobs.ending import set_end, set_lifetime
from synergy_view.moving.jobs.words import (
    KAI_QUEUES,
    KUEUE_QUEUE,
    VOLCANO_QUEUES,
    JobDraft,
    Workers,
    queue_of,
    set_priority,
)
from synergy_view.moving.jobs.workers import gpus_of
from synergy_view.moving.words import Fields

GROUP: Final = "kubeflow.org"
_KNOWN: Final = {
    "elasticPolicy": "has no counterpart: the number of GPUs is fixed for the life of a job; PET_* is in each worker's "
    "environment",
    "nprocPerNode": "PET_NPROC_PER_NODE is the GPUs of the worker's pod",
}


def job(draft: JobDraft, fields: Fields) -> Workers | None:
    """The workers: Master and Worker together; None if they have no GPU."""
    draft.queue = queue_of(draft, KUEUE_QUEUE, *KAI_QUEUES, *VOLCANO_QUEUES)
    policy = fields.within("runPolicy")
    scheduling = policy.within("schedulingPolicy")
    draft.queue = draft.queue or str(scheduling.take("queue") or "")
    set_priority(draft, given=scheduling.take("priorityClass"), path=scheduling.path("priorityClass"))
    replicas = fields.within("pytorchReplicaSpecs")
    found = [one for role in ("Worker", "Master") if (one := _replicas(draft, replicas, role)) is not None]
    if not found:
        return None
    if policy.take("suspend") is True and not draft.queue:
        draft.spec["suspend"] = True
    set_end(draft)
    set_lifetime(draft, policy)
    if policy.take("cleanPodPolicy") not in (None, "None", "Running"):
        draft.remark(policy.path("cleanPodPolicy"), "pods of the last run stay until the job is deleted")
    least = scheduling.take("minAvailable")
    count = sum(one.count for one in found)
    if least is not None and least != count:
        draft.remark(scheduling.path("minAvailable"), f"all {count} workers of a TrainingJob start together")
    for rest in (scheduling, policy, replicas, fields):
        rest.tell_rest(draft, _KNOWN)
    if len(found) > 1 and found[0].template != found[1].template:
        draft.remark(f"{found[1].path}", f"differs from {found[0].path}, which all workers get; RANK is 0 in the first")
    return Workers(count, found[0].template, found[0].path)


def _replicas(draft: JobDraft, replicas: Fields, role: str) -> Workers | None:
    given = replicas.within(role)
    template: Any = given.take("template")
    count = draft.number(given.take("replicas"), given.path("replicas"), 1)
    restart = given.take("restartPolicy")
    if restart in ("ExitCode", "Always"):
        draft.remark(given.path("restartPolicy"), f"{restart} has no counterpart: spec.backoffLimit bounds failed runs")
    if template is None or count == 0:
        return None
    if not isinstance(template, dict) or not (template.get("spec") or {}).get("containers"):
        raise ValueError(f"{draft.source}: {given.path('template')}: must have containers")
    if gpus_of(template) == 0:
        draft.remark(given.path("template"), "has no GPU and is not translated")
        return None
    return Workers(count, template, given.path("template"))
