"""`--watch`: repeated output."""

import time
from collections.abc import Callable

import click

_EVERY_S = 2.0


def repeated(watch: bool, write: Callable[[], None]) -> None:
    """Write the answer once, or with `watch` every two seconds until Ctrl-C. A terminal is cleared before each."""
    if not watch:
        write()
        return
    try:
        while True:
            click.clear()
            write()
            time.sleep(_EVERY_S)
    except KeyboardInterrupt:
        return
