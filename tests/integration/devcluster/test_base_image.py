"""The base image is made anew where its making was interrupted."""

import subprocess
from pathlib import Path

import pytest

from synergy_devcluster.images.base import clear


def test_what_an_interrupted_run_left_mounted_does_not_stop_the_next_one(tmp_path: Path) -> None:
    work = tmp_path / "base"
    mounted = work / "root" / "proc"
    mounted.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "left", mounted], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    (mounted / "file").touch()
    clear(work)
    assert not work.exists()
    clear(work)
