"""The extender's own process stays light: what plans lives in the planner's process."""

import subprocess
import sys


def test_the_extender_does_not_load_what_only_the_planner_needs() -> None:
    code = "import sys, synergy_extender.app; print(sorted({'numpy', 'scipy', 'cvxpy', 'highspy'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
