"""What MPS' limit on a client's threads leaves it of its speed.

NVIDIA's device plugin sets the default active thread percentage of a node's MPS daemon to 100 / replicas. It holds for
each client by itself, also for one that has its GPU alone or was given all its devices. The work that a client does on
the GPU cannot exceed its part of the threads: of a job that keeps the whole GPU busy `compute` of the time at full
speed, the fraction f that it keeps has f x compute <= part.
"""

from collections.abc import Iterable

from synergy_core.model.snapshot import Job, Node
from synergy_core.model.usage import Usage


def ceiling(usage: Usage | None, percent: int) -> float:
    """The most that a client keeps of its speed; all of it where its usage is not known."""
    if usage is None or percent >= 100 or usage.compute * 100 <= percent:
        return 1.0
    return percent / (100 * usage.compute)


def measured_with(job: Job, gpu_type: str, percent: int) -> float:
    """The part of its best speed on a whole GPU that the best speed is which is known of a job.

    A matrix says under which limit it was measured. A speed that was measured without one, as the job ran, is taken to
    be of GPUs like those that are asked about, where each client has `percent` of the threads.
    """
    profile = job.profiles.get(gpu_type)
    if profile is not None:
        percent = profile.client_thread_percent
    elif gpu_type not in job.measured:
        percent = 100
    return ceiling(job.usage.get(gpu_type), percent)


def kept_alone(job: Job, gpu_type: str, percent: int) -> float:
    """What a limit on threads leaves a job of its best known speed, where it does not share.

    A limit that already held when the job was measured takes nothing more. A gain from more threads than the job had
    then is not known, and not assumed.
    """
    return min(1.0, ceiling(job.usage.get(gpu_type), percent) / measured_with(job, gpu_type, percent))


def most_percent(nodes: Iterable[Node]) -> int:
    """The largest percentage of threads that one of these nodes lets a client use."""
    return max((node.client_thread_percent for node in nodes), default=100)


def least_percent(nodes: Iterable[Node]) -> int:
    """The percentage of threads that every one of these nodes lets a client use."""
    return min((node.client_thread_percent for node in nodes), default=100)
