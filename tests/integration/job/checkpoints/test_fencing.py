"""Two runs of a job that write its checkpoint at the same time."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from synergy_job import Checkpoint

WRITES = """
import sys, time, synergy_job
checkpoint, until = synergy_job.Checkpoint(sys.argv[1]), time.monotonic() + float(sys.argv[3])
checkpoint.write([int(sys.argv[2])] * 300_000)
print("first", flush=True)
while time.monotonic() < until:
    try:
        checkpoint.write([int(sys.argv[2])] * 300_000)
    except synergy_job.FencedError:
        print("fenced", flush=True)
        break
"""


@contextmanager
def run(number: int, job: str = "uid-1") -> Iterator[None]:
    """This process is a worker of that run."""
    names = {"SYNERGY_JOB": "j", "SYNERGY_NAMESPACE": "team", "SYNERGY_JOB_UID": job, "SYNERGY_RUN": str(number)}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def started(path: Path, number: int, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITES, str(path), str(number), str(seconds)]
    environ = {**os.environ, "SYNERGY_JOB": "j", "SYNERGY_JOB_UID": "uid-1", "SYNERGY_RUN": str(number)}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "first\n"
    return process


def test_two_runs_that_write_at_once_leave_the_newer_ones_checkpoint_whole(tmp_path: Path) -> None:
    path = tmp_path / "model"
    old = started(path, 1, 30.0)
    new = started(path, 2, 1.0)
    assert old.communicate(timeout=120)[0] == "fenced\n"
    assert new.communicate(timeout=120)[0] == ""
    with run(3):
        assert Checkpoint(path).read() == [2] * 300_000
