"""`python3 -m synergy_clusters`: the controller of worker clusters, configured by environment variables."""

import sys

from synergy_clusters.config import read_settings
from synergy_clusters.process import serve
from synergy_service.program import run_program


def main() -> int:
    """Exit code 0 after a signal, 2 for bad settings or unusable files."""
    return run_program(read_settings, serve, (OSError, ValueError))


if __name__ == "__main__":
    sys.exit(main())
