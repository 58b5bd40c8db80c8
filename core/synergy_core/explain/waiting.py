"""The plan's entry for a job that waits: its reason, and a message that says the next step."""

from collections.abc import Mapping

from synergy_core.model.answer import Waiting
from synergy_core.model.reasons import MESSAGES, NO_FACTS, Reason, gpus_in_words
from synergy_core.model.snapshot import Job


def waiting(job: Job, reason: Reason, facts: Mapping[str, str] = NO_FACTS) -> Waiting:
    """The entry of a plan with the reason why `job` waits; `facts` are the numbers of a quota that is full."""
    types = ", ".join(job.gpu_types) or "any"
    gpus = gpus_in_words(job.gpus)
    message = MESSAGES[reason].format(gpus=gpus, types=types, skew=job.skew, **facts)
    return Waiting(job=job.name, reason=reason.value, message=message)
