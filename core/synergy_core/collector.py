"""Python's cyclic garbage collector, kept out of a plan.

A plan makes many objects that live until it is done, which the collector looks through again and again in vain: on
10,000 GPUs that is a third of the time. For the edges that call `plan()`; it switches for the whole process.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collection within; afterwards it is as it was."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
