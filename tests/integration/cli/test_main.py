"""What the command line loads."""

import subprocess
import sys


def test_planning_needs_nothing_of_the_other_rooms() -> None:
    script = (
        "import sys; from synergy_cli.main import main\n"
        "print(sorted(m for m in sys.modules if m.partition('.')[0] in"
        " {'synergy_devcluster', 'synergy_kube', 'kopf', 'fastapi', 'kubernetes', 'rich', 'cvxpy'}))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"
