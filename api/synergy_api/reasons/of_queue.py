"""Why a job waits. The planner's own words are in `synergy_core.model.reasons`; here is what they mean to people."""

from typing import Final

from synergy_api.reasons.entry import Entry, ReasonPlace
from synergy_api.reasons.words import Reason
from synergy_core.model.reasons import MESSAGES, NEVER
from synergy_core.model.reasons import Reason as Planned

_PLANNED_ALIKE: Final = Planned.TOO_MANY_GPUS
"""Validation has this word too, with a text of its own."""

_WAITING: Final = (ReasonPlace.QUEUE, ReasonPlace.RUNNING)
"""The condition and the event of a waiting job have the words of its place in the queue."""

QUEUE: Final[dict[Reason, Entry]] = {
    **{
        Reason(planned.value): Entry(
            _WAITING,
            MESSAGES[planned],
            event="Warning" if planned in NEVER else "Normal",
        )
        for planned in Planned
        if planned is not _PLANNED_ALIKE
    },
    Reason.BACKING_OFF: Entry(
        (ReasonPlace.QUEUE,),
        "the last run {how}. It is tried again at {until}.",
        means="The wait after a run that failed or was refused; the condition Running says what went wrong.",
    ),
    Reason.NEVER_PREEMPTED_CAP: Entry(
        _WAITING,
        "spec.preemption is Never and the job needs {gpus}, but jobs of tenant {tenant} may keep at most {most} from "
        "preemption, and {held} of them are held or asked for earlier",
        "set spec.preemption to Checkpoint or Signal, wait for those jobs, or ask the cluster's administrator for a "
        "Tenant {tenant} whose spec.caps.maxNeverPreemptedGPUs allows it",
        "A job that is never preempted keeps its GPUs from all others, so the administrator says how many a tenant "
        "may keep: none unless a Tenant allows it.",
        "Normal",
    ),
    Reason.STATUS_REFUSED: Entry(
        (ReasonPlace.QUEUE, ReasonPlace.EVENT),
        "the API server refuses what kube-synergy writes of this job: {problem}. It is tried again, at the "
        "latest after 5 minutes",
        "make the object smaller where it is too large, upgrade the CRDs where a field is not declared, delete the job "
        "where its namespace is gone, else ask the cluster's administrator what refuses the write",
        "Without its status the job can neither start nor leave. Other jobs are planned without it meanwhile.",
        "Warning",
    ),
    Reason.CANNOT_BE_PLANNED: Entry(
        _WAITING,
        "{problem}",
        "correct the field that is named",
        "The spec, or what the status says of past runs, contradicts itself in the planner's eyes.",
        "Warning",
    ),
}
