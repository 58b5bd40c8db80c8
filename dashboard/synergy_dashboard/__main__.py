"""`python3 -m synergy_dashboard`: the dashboard, configured by environment variables."""

import logging
import ssl
import sys

import uvloop
from sqlalchemy.exc import SQLAlchemyError

from synergy_dashboard.config import ConfigError, read_settings
from synergy_dashboard.logs import configure
from synergy_dashboard.process import serve
from synergy_kube.nesting import admit_deep_objects


def main() -> int:
    """Exit code 0 after a signal, 2 for bad settings or unusable files."""
    try:
        settings = read_settings()
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    configure(settings.log_level)
    admit_deep_objects()
    try:
        uvloop.run(serve(settings))
    except (OSError, ssl.SSLError, SQLAlchemyError, ValueError) as error:
        logging.getLogger(__name__).error("cannot start: %s", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
