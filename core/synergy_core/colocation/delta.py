"""How much jobs gain from running together (the co-location thesis, equation 4.1).

Two forms. `delta` is the thesis': one iteration of each job, and all iterations start together. It needs the iteration
times. `delta_of_fractions` takes all iterations as equally long, and needs only the fractions of the speed alone.
"""

from collections.abc import Sequence


def delta(alone_s: Sequence[float], shared_s: Sequence[float]) -> float:
    """The speedup of running jobs together instead of one after the other: sum of t_j / longest t'_j.

    `alone_s` are the seconds of an iteration of each job alone, `shared_s` those while all of them share the GPU. Above
    1 they gain. Raises ValueError where there is no job, the lengths differ, or a time is not above 0.
    """
    if not alone_s or len(alone_s) != len(shared_s):
        raise ValueError(f"times of {len(alone_s)} jobs alone and {len(shared_s)} shared; give both for each job")
    if min(*alone_s, *shared_s) <= 0.0:
        raise ValueError("a time is not above 0 seconds")
    return sum(alone_s) / max(shared_s)


def delta_of_fractions(fractions: Sequence[float]) -> float:
    """Delta of jobs whose iterations are equally long, from their fractions t_j / t'_j: n times the least fraction.

    Raises ValueError where there is none or one is not above 0.
    """
    return delta([1.0] * len(fractions), [1.0 / fraction if fraction > 0.0 else 0.0 for fraction in fractions])
