"""A checkpoint whose writer is killed."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from synergy_job import Checkpoint

WRITES_FOR_EVER = """
import sys, synergy_job
checkpoint = synergy_job.Checkpoint(sys.argv[1])
number = 0
while True:
    number += 1
    checkpoint.write([number] * 200_000)
    if number == 1:
        print("first", flush=True)
"""


@pytest.mark.parametrize("killed_after", [0.0, 0.004, 0.011, 0.017, 0.023])
def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path: Path, killed_after: float) -> None:
    path = tmp_path / "model"
    with subprocess.Popen([sys.executable, "-c", WRITES_FOR_EVER, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        signal.sigtimedwait([], killed_after)
        writer.kill()
    found = Checkpoint(path).read()
    assert len(found) == 200_000
    assert len(set(found)) == 1
