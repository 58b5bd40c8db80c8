"""The command's own errors: early, and before anything is started."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--faults", "-1"], "argument --faults: '-1': write a whole number of 0 or more"),
        (["--jobs", "0"], "argument --jobs: '0': write a whole number of 1 or more"),
        (
            ["--report", "/no/such/folder/out.json"],
            "argument --report: /no/such/folder/out.json: there is no such folder",
        ),
    ],
)
def test_bad_input_is_named_before_anything_is_started(repository: Path, arguments: list[str], words: str) -> None:
    command = [sys.executable, "-m", "chaos", *arguments]
    ended = subprocess.run(command, cwd=repository / "tests", capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 2
    assert words in ended.stderr
