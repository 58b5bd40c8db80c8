"""Settings of the garbage collector for a process that holds a cluster in memory and answers within milliseconds."""

import gc
from typing import Final

_THRESHOLDS: Final = (10_000, 5, 400)
"""The thresholds of the three generations (`gc.set_threshold`). Python's own are (700, 10, 10). Nothing else runs while
the second generation is collected either, so it is small: 70,000 objects at most."""


def settle() -> None:
    """Call this once the process has read the cluster.

    During a full collection nothing else runs. Python makes one whenever a quarter of the objects was replaced, as in
    every round. Most objects are freed with their last reference, and only the few cycles need the collector. So the
    collector ignores the present objects from now on, and runs seldom (decision 40 has the figures).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
