"""The extender's own process stays light: what plans lives in the planner's process."""

import subprocess
import sys


def test_the_extender_does_not_load_what_only_the_planner_needs() -> None:
    code = "import sys, synergy_extender.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "synergy_extender.app" in loaded
    assert loaded & {"numpy", "scipy", "cvxpy", "highspy"} == set()
