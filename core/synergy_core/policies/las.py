"""Least attained service: the job that has had the fewest GPU-seconds first (Tiresias; Synergy, section 2.2)."""

from operator import attrgetter

from synergy_core.policies.queue import Queue, Ranking, ranked


def rank(queue: Queue) -> Ranking:
    """Jobs by attained service, in GPU-seconds."""
    return ranked(queue, attrgetter("attained_gpu_s"))
