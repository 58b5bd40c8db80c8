"""The operator's process without the environment that it needs."""

import subprocess
import sys

import pytest

COMPLETE = {"SYNERGY_PROFILER_IMAGE": "p:1", "SYNERGY_EXTENDER_URL": "https://e:9444", "SYNERGY_CA_FILE": "/ca.crt"}


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({}, "set SYNERGY_PROFILER_IMAGE"),
        (COMPLETE, "No such file or directory: '/ca.crt'"),
    ],
)
def test_the_process_ends_with_one_line_if_its_environment_does_not_suffice(
    environ: dict[str, str], words: str
) -> None:
    command = [sys.executable, "-m", "synergy_operator"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
