"""Debian's PyTorch: the system's Python that has it, and scripts run by it. `make torch` installs it."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.needed import lacks

PYTHON = Path("/usr/bin/python3")
LIBRARY = Path(__file__).parents[3] / "job"
ENVIRON = {
    "PYTHONPATH": str(LIBRARY),
    "OMP_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONFAULTHANDLER": "1",
}
"""What a script needs to find the library, and to compute as in the examples' image."""


def required() -> None:
    """Skip the test where PyTorch is missing; in CI fail it."""
    if not any(Path("/usr/lib/python3/dist-packages").glob("torch/__init__.py")):
        lacks("needs Debian's python3-torch: make torch")


def run(code: str) -> str:
    """The output of a script; the test fails where the script does."""
    return output_of([str(PYTHON), "-c", code], ENVIRON)


def output_of(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """What a command prints; the test fails where the command does."""
    done = subprocess.run(
        command,
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
