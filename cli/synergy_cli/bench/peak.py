"""How much memory a benchmark takes."""

import resource
import sys


def peak_mb() -> int:
    """Most memory that this process had by now, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // (1 << 20 if sys.platform == "darwin" else 1 << 10)
