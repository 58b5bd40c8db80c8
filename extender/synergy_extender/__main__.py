"""`python3 -m synergy_extender`: one replica of the extender, configured by environment variables."""

import logging
import sys

import uvloop

from synergy_extender.app import serve
from synergy_extender.config import ConfigError, read_settings
from synergy_extender.logs import configure
from synergy_kube.nesting import admit_deep_objects

_SWITCH_SECONDS = 0.0001
"""How long a thread that computes may keep the event loop from running: a filter waits that long, several times."""


def main() -> int:
    """Exit code 0 after a signal, 2 for bad settings or unusable files."""
    try:
        settings = read_settings()
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    configure(settings.log_level)
    admit_deep_objects()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        uvloop.run(serve(settings))
    except OSError as error:
        logging.getLogger(__name__).error("cannot start: %s", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
