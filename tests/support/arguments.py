"""Values of command lines of the test programs."""

import argparse
from collections.abc import Callable


def at_least(least: int) -> Callable[[str], int]:
    """Reads a whole number of `least` or more. Raises argparse.ArgumentTypeError that says so."""

    def number(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r}: write a whole number of {least} or more")
        return int(text)

    return number
