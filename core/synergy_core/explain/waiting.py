"""The plan's entry for a job that waits: its reason, and a message that says the next step."""

from collections.abc import Mapping
from functools import lru_cache

from synergy_core.model.answer import Waiting
from synergy_core.model.reasons import MESSAGES, NO_FACTS, Reason, gpus_in_words
from synergy_core.model.snapshot import Job


def waiting(job: Job, reason: Reason, facts: Mapping[str, str] = NO_FACTS) -> Waiting:
    """The entry of a plan with the reason why `job` waits; `facts` are the numbers of a quota that is full."""
    of_job = job.gpus, job.gpu_types, job.skew
    message = _worded(reason, *of_job, facts) if facts else _usual(reason, *of_job)
    return Waiting(job=job.name, reason=reason.value, message=message)


def _worded(
    reason: Reason, gpus: int, gpu_types: tuple[str, ...], skew: float, facts: Mapping[str, str] = NO_FACTS
) -> str:
    types = ", ".join(gpu_types) or "any"
    return MESSAGES[reason].format(gpus=gpus_in_words(gpus), types=types, skew=skew, **facts)


_usual = lru_cache(maxsize=1024)(_worded)
"""Messages without further facts: most waiting jobs share a few."""
