"""The Gittins index of a job that has had some service (Tiresias, section 3.2.2, Pseudocode 1, line 11).

    G(a) = sup over D > 0 of  P(S - a <= D | S > a) / E[min(S - a, D) | S > a]

S is the service, in GPU-seconds, that a job needs from its beginning to its end, a what it has had. The larger the
index, the likelier a little more service ends the job. S is an empirical distribution: the service of jobs that have
ended. Its supremum lies where S - a takes a value: between two values the numerator stands still while the denominator
grows. With a fixed quantum D (priority discretisation, section 3.2.3) the index is the ratio at that D.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class ServiceDistribution:
    """Service of finished jobs, GPU-seconds; every sample has the same weight.

    Raises ValueError where there is no sample, or one that is not above 0 or not finite.
    """

    def __init__(self, service_gpu_s: Sequence[float]) -> None:
        self._values = np.sort(np.asarray(service_gpu_s, dtype=np.float64))
        if self._values.size == 0 or not self._values[0] > 0 or not np.isfinite(self._values[-1]):
            raise ValueError("a service distribution needs at least one sample, and all above 0 and finite")
        # differences of large sums tell small ones: hence the longer floats
        self._sums = np.concatenate(([0.0], np.cumsum(self._values, dtype=np.longdouble)))

    def index(self, attained_gpu_s: Sequence[float] | Floats, quantum_gpu_s: float = np.inf) -> Floats:
        """Index of each job, 1 / GPU-seconds, with one service quantum for all of them.

        An infinite quantum gives 1 / the mean service that is left. A job that has had as much as the largest sample
        has index 0: nothing says that it will ever end.
        """
        attained = np.asarray(attained_gpu_s, dtype=np.float64)
        past = np.searchsorted(self._values, attained, side="right")
        reached = np.searchsorted(self._values, attained + quantum_gpu_s, side="right")
        longer = self._values.size - reached
        within = np.where(longer > 0, quantum_gpu_s, 0.0) * longer
        spent = self._sums[reached] - self._sums[past] - (reached - past) * attained.astype(np.longdouble) + within
        index = np.zeros(attained.shape)
        np.divide(reached - past, spent, out=index, where=past < self._values.size, casting="same_kind")
        return index

    def best_index(self, attained_gpu_s: Sequence[float] | Floats) -> Floats:
        """Index of each job with the quantum that is best for it: the supremum, 1 / GPU-seconds.

        Takes jobs x samples steps at the most; jobs between the same two samples are looked at together.
        """
        attained = np.asarray(attained_gpu_s, dtype=np.float64)
        past = np.searchsorted(self._values, attained, side="right")
        index = np.zeros(attained.shape)
        for passed in np.unique(past[past < self._values.size]):
            here = past == passed
            index[here] = self._suprema(int(passed), attained[here])
        return index

    def _suprema(self, passed: int, attained: Floats) -> Floats:
        """For jobs that have had the service of `passed` samples, and not that of one more."""
        ahead = self._values[passed:]
        beyond = ahead - ahead[0]
        ended = np.arange(1, ahead.size + 1)
        spent = np.cumsum(beyond) + (ahead.size - ended) * beyond
        # just before a sample what is left is small beside both: the difference itself is exact there, and only added
        ratios = ended / (spent + (ahead[0] - attained)[:, np.newaxis] * ahead.size)
        best: Floats = ratios.max(axis=1)
        return best
