"""`--watch`: repeated output."""

import time
from collections.abc import Callable

import click

LEAST_S = 2.0
IDLE = 5.0
"""Between two answers pass so many times the seconds that one took: whoever watches takes a part of a large cluster's
API server only."""


def repeated(watch: bool, write: Callable[[], None]) -> None:
    """Write the answer once, or with `watch` again and again until Ctrl-C. A terminal is cleared before each."""
    if not watch:
        write()
        return
    try:
        while True:
            click.clear()
            begun = time.monotonic()
            write()
            time.sleep(max(LEAST_S, IDLE * (time.monotonic() - begun)))
    except KeyboardInterrupt:
        return
