"""Jobs of batch/v1, and Pods without a controller."""

from typing import Final

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
from synergy_view.moving.words import Fields

_KNOWN: Final = {
    "podFailurePolicy": "has no counterpart: a pod that was evicted or lost its node is no failure, others count for "
    "spec.backoffLimit",
    "successPolicy": "has no counterpart: the job has succeeded when all workers have",
    "managedBy": "has no counterpart",
    "backoffLimitPerIndex": "has no counterpart: spec.backoffLimit counts runs of all workers",
    "maxFailedIndexes": "has no counterpart: spec.backoffLimit counts runs of all workers",
}
_FROM_API_SERVER: Final = ("selector", "manualSelector", "podReplacementPolicy")


def job(draft: JobDraft, fields: Fields) -> Workers:
    """The workers of a Job: as many as run at once."""
    draft.queue = queue_of(draft, KUEUE_QUEUE, *KAI_QUEUES, *VOLCANO_QUEUES)
    set_priority(draft)
    count = max(1, draft.number(fields.take("parallelism"), "spec.parallelism", 1))
    completions = draft.number(fields.take("completions"), "spec.completions", count)
    if completions > count:
        draft.remark("spec.completions", f"{completions} pods of which {count} run at once: all workers of a "
                     f"TrainingJob train together; make {-(-completions // count)} TrainingJobs of it")  # fmt: skip
    if fields.take("completionMode") == "Indexed":
        draft.remark("spec.completionMode", "JOB_COMPLETION_INDEX is RANK in a worker's environment")
    suspended = fields.take("suspend") is True
    if suspended and not draft.queue:
        draft.spec["suspend"] = True
    set_end(draft)
    set_lifetime(draft, fields)
    for name in _FROM_API_SERVER:
        fields.take(name)
    template = fields.take("template")
    fields.tell_rest(draft, _KNOWN)
    return Workers(count, template, "spec.template")


def pod(draft: JobDraft, fields: Fields) -> Workers:
    """The one worker of a Pod."""
    draft.queue = queue_of(draft, *KAI_QUEUES, KUEUE_QUEUE, *VOLCANO_QUEUES)
    set_priority(draft)
    set_end(draft)
    spec = {name: fields.take(name) for name in fields.names}
    metadata = {part: draft.metadata.get(part) or {} for part in ("labels", "annotations")}
    for name in ("serviceAccount", "enableServiceLinks", "preemptionPolicy"):
        spec.pop(name, None)
    return Workers(1, {"metadata": metadata, "spec": spec}, "Pod")
