"""Objects that are nested deeply: one that cannot be read would end the watch of all."""

import sys
from typing import Final

_DEEPEST: Final = 10_000
"""Levels of JSON that the API server takes (encoding/json, maxNestingDepth), and keeps where a schema says nothing."""
_OWN_FRAMES: Final = 1_000


def admit_deep_objects() -> None:
    """Let this process decode whatever the API server may hold. Python's own limit is a tenth of it."""
    sys.setrecursionlimit(_DEEPEST + _OWN_FRAMES)
