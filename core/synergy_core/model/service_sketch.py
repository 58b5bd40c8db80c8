"""The service that finished jobs have needed, in bounded space: a histogram with buckets of equal relative width.

Bucket i counts the services in (WIDTH^(i-1), WIDTH^i] GPU-seconds; each is told back within 5 % (Masson, Rim, Lee,
"DDSketch", VLDB 2019, section 2). Services from one GPU-second to a million GPU-years need 328 buckets at the most.
What is old is forgotten by halves: a cluster's jobs of last year say little about those of today.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate
from math import ceil, log

WIDTH = 1.1
MOST = 10_000
"""Jobs that are counted before all counts are halved."""
LAST = ceil(log(1e6 * 365.25 * 86400) / log(WIDTH))
"""The last bucket: it counts all services beyond, too."""


def bucket(service_gpu_s: float) -> int:
    """Index of the bucket of a service, GPU-seconds."""
    return min(LAST, max(0, ceil(log(service_gpu_s) / log(WIDTH)))) if service_gpu_s > 0 else 0


def counted(counts: Mapping[int, int], services_gpu_s: Iterable[float]) -> dict[int, int]:
    """The counts by bucket with more jobs. Too many of them are halved, and buckets of one job forgotten."""
    more = dict(counts)
    total = sum(more.values())
    for service in services_gpu_s:
        index = bucket(service)
        more[index] = more.get(index, 0) + 1
        total += 1
        if total > MOST:
            more = {index: count // 2 for index, count in more.items() if count > 1}
            total = sum(more.values())
    return dict(sorted(more.items()))


def samples(counts: Mapping[int, int], most: int = 1000) -> tuple[float, ...]:
    """Services as equally likely samples, GPU-seconds, ascending: each job's, or so many quantiles of them."""
    indices = sorted(counts)
    if not indices:
        return ()
    values = [2.0 * WIDTH**index / (WIDTH + 1.0) for index in indices]
    ends = list(accumulate(counts[index] for index in indices))
    size = min(ends[-1], most)
    return tuple(values[bisect_left(ends, (place + 0.5) * ends[-1] / size)] for place in range(size))
