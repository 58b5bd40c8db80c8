"""Deeply nested objects. One object that cannot be decoded would end the watch of all objects."""

import sys
from typing import Final

_DEEPEST: Final = 10_000
"""Levels of JSON that the API server accepts (encoding/json, maxNestingDepth). It keeps them where a schema does not
restrict them."""
_OWN_FRAMES: Final = 1_000


def admit_deep_objects() -> None:
    """Let this process decode everything that the API server may hold. Python's own limit is a tenth of that."""
    sys.setrecursionlimit(_DEEPEST + _OWN_FRAMES)
