"""When a job is done, how it leaves and how often it may fail: what the jobs of others say, and what they do not."""

from typing import Final

from synergy_view.moving.jobs.words import JobDraft
from synergy_view.moving.words import Fields

_MOST_RETRIES: Final = 1000


def set_end(draft: JobDraft) -> None:
    """Of a program of which nothing is known: one step, not measured, never preempted."""
    draft.spec |= {"steps": 1, "profile": {"mode": "Skip"}, "preemption": "Never"}
    draft.remark("", "says no training steps: steps 1 is the whole program. With the library in the script give "
                 "spec.steps, and remove spec.profile to have it measured")  # fmt: skip
    draft.remark("", "preemption Never keeps its GPUs until it is done, within the Tenant's "
                 "caps.maxNeverPreemptedGPUs: give Checkpoint with the library, or Signal if the script saves on "
                 "SIGTERM")  # fmt: skip


def set_lifetime(draft: JobDraft, fields: Fields, *, retries: str = "backoffLimit") -> None:
    """Retries, time to live and the longest time, as `fields` has them."""
    limit = fields.take(retries)
    if limit is not None:
        draft.spec["backoffLimit"] = min(_MOST_RETRIES, draft.number(limit, fields.path(retries), 0))
    kept = fields.take("ttlSecondsAfterFinished")
    if kept is not None:
        draft.spec["ttlSecondsAfterFinished"] = draft.number(kept, fields.path("ttlSecondsAfterFinished"), 0)
    if fields.take("activeDeadlineSeconds") is not None:
        draft.remark(fields.path("activeDeadlineSeconds"), "has no counterpart: spec.maxRunSeconds counts training "
                     "only, and needs the library in the script; spec.slo.deadline warns and ends nothing")  # fmt: skip
