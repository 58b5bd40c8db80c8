"""Programs that some tests need and a machine may lack."""

import os
from pathlib import Path
from typing import Final

import pytest

from support.dashboard import postgres

_CHROMIUM: Final = Path("/usr/bin/chromium")


def chromium() -> str:
    """The path of Debian's Chromium."""
    if not _CHROMIUM.exists():
        lacks(f"needs {_CHROMIUM}: make chromium")
    return str(_CHROMIUM)


def postgresql() -> None:
    """Debian's package postgresql must be there."""
    if postgres.programs() is None:
        lacks("needs Debian's package postgresql: make postgres")


def lacks(what: str) -> None:
    """Skip the running test. It fails instead where the environment variable CI is set: CI must run every check."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} (CI is set, so a missing program is a failure)")
    pytest.skip(what)
