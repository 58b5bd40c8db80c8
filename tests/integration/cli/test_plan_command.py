"""`kube-synergy plan` as a process."""

import json
import subprocess
import sys
from pathlib import Path

EXAMPLE = "examples/snapshots/two-servers.json"


def _example(repository: Path) -> str:
    return str(repository / EXAMPLE)


def test_json_is_one_object_on_stdout_and_nothing_else(repository: Path) -> None:
    command = [str(Path(sys.executable).parent / "kube-synergy"), "plan", _example(repository), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    answer = json.loads(done.stdout)
    assert answer["policy"] == "2d-las"
    assert answer["mechanism"] == "tune"
    assert 0 < answer["seconds"] < 5
    assert len(answer["allocations"]) == 4
