"""`python3 -m synergy_dashboard`: the dashboard, configured by environment variables."""

import ssl
import sys

from sqlalchemy.exc import SQLAlchemyError

from synergy_dashboard.config import read_settings
from synergy_dashboard.process import serve
from synergy_service.program import run_program


def main() -> int:
    """Exit code 0 after a signal, 2 for bad settings or unusable files."""
    return run_program(read_settings, serve, (OSError, ssl.SSLError, SQLAlchemyError, ValueError))


if __name__ == "__main__":
    sys.exit(main())
