"""The garbage collector of a process that holds a cluster in memory and answers within milliseconds."""

import gc
from typing import Final

_THRESHOLDS: Final = (10_000, 20, 100)
"""Objects that came (less those that went) between two looks at the young, looks until one at the middle-aged, and of
these until one at all. Python's own are (700, 10, 10)."""


def settle() -> None:
    """Call this once what the process keeps is there.

    A look at all objects of a thousand jobs takes some 50 ms, in which nothing else runs, and Python takes one whenever
    a quarter of them has been replaced, as by every round. Objects go with their last reference; what the collector is
    for are cycles, of which there are few. So what is there now is looked at no more, and all the rest seldom.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
