"""`python3 -m synergy_extender`: one replica of the extender, configured by environment variables."""

import sys

from synergy_extender.app import serve
from synergy_extender.config import read_settings
from synergy_service.program import run_program

_SWITCH_SECONDS = 0.0001
"""How long a computing thread may keep the event loop from running. A filter request waits that long several times."""


def main() -> int:
    """Exit code 0 after a signal, 2 for bad settings or unusable files."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    return run_program(read_settings, serve, (OSError,))


if __name__ == "__main__":
    sys.exit(main())
