"""Queue thresholds from the distribution of the jobs' service (Tiresias leaves them open, section 3.2.3).

The cluster is taken for one server with Poisson arrivals. Queues by attained service with first come, first served
within each are then Kleinrock's multilevel queues (Queueing Systems II, section 4.7): a job of service x that ends in
the queue up to threshold b, behind threshold a, takes

    T(x) = (W(b) + x) / (1 - r(a)),  W(b) = L E[min(S, b)^2] / (2 (1 - r(b))),  r(b) = L E[min(S, b)]

on average, with L the arrival rate. The mean of T over all jobs is a sum over the queues of what depends on their two
ends alone, so the best K - 1 thresholds among the quantiles of S are found by dynamic programming. Only ratios count:
GPU-seconds stand for seconds of the server, the load r(inf) is given.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

LOAD = 0.9
"""The load that thresholds are made for: queues matter where the cluster is busy."""
_CANDIDATES = 128

Floats = npt.NDArray[np.float64]


def learned_thresholds(service_gpu_s: Sequence[float], queues: int, load: float = LOAD) -> tuple[float, ...] | None:
    """The `queues` - 1 thresholds, GPU-seconds ascending, with the least mean time in the system.

    None where the services, of which there may be none, do not have so many different values. Raises ValueError where
    `queues` is below 2 or `load` not between 0 and 1.
    """
    if queues < 2 or not 0.0 < load < 1.0:
        raise ValueError("thresholds need two queues at least and a load between 0 and 1")
    services = np.sort(np.asarray(service_gpu_s, dtype=np.float64))
    if services.size == 0:
        return None
    inner = np.unique(np.quantile(services, np.linspace(0.0, 1.0, _CANDIDATES), method="inverted_cdf"))[:-1]
    if inner.size < queues - 1:
        return None
    ends = np.concatenate(([0.0], inner, [np.inf]))
    cost = _costs(services, ends, load)
    best, came_from = cost[0], []
    for _ in range(queues - 1):
        through = best[:, np.newaxis] + cost
        came_from.append(through.argmin(axis=0))
        best = through.min(axis=0)
    end, found = ends.size - 1, []
    for step in reversed(came_from):
        end = int(step[end])
        found.append(float(ends[end]))
    return tuple(reversed(found))


def _costs(services: Floats, ends: Floats, load: float) -> Floats:
    """What a queue from each end to each later one adds to the mean time; infinite where the order is wrong."""
    rate = load / services.mean()
    capped = np.minimum(services[:, np.newaxis], ends)
    busy = rate * capped.mean(axis=0)
    wait = rate * np.square(capped).mean(axis=0) / (2.0 * (1.0 - busy))
    below = np.searchsorted(services, ends, side="right")
    below[0] = 0
    sums = np.concatenate(([0.0], np.cumsum(services)))[below]
    jobs = (below[np.newaxis, :] - below[:, np.newaxis]) / services.size
    work = (sums[np.newaxis, :] - sums[:, np.newaxis]) / services.size
    cost = (jobs * wait[np.newaxis, :] + work) / (1.0 - busy[:, np.newaxis])
    ahead = np.arange(ends.size)
    allowed = ahead[:, np.newaxis] < ahead[np.newaxis, :]
    return np.where(allowed, cost, np.inf)
