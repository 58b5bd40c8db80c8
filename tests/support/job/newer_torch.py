"""The PyTorch of a newer Debian, in a tree of its own with its loader and Python. `make newer-torch` makes it."""

from pathlib import Path

from support.job import debian_torch
from support.needed import lacks

ROOT = Path(__file__).parents[3] / ".newer-torch"
_LIBRARIES = ROOT / "usr/lib/x86_64-linux-gnu"
_PYTHON = ROOT / "usr/bin/python3"
COMMAND = [
    str(ROOT / "usr/lib64/ld-linux-x86-64.so.2"),
    *("--argv0", str(_PYTHON)),
    *("--library-path", f"{_LIBRARIES}:{_LIBRARIES / 'blas'}:{_LIBRARIES / 'lapack'}"),
    str(_PYTHON),
]
ENVIRON = {
    **debian_torch.ENVIRON,
    "PYTHONHOME": str(ROOT / "usr"),
    "USE_LIBUV": "0",
    "PYTHONWARNINGS": "ignore",
}
"""Debian builds PyTorch without libuv."""


def required() -> None:
    """Skip the test where the tree is missing; in CI fail it."""
    if not (ROOT / ".done").exists():
        lacks("needs the PyTorch of a newer Debian: make newer-torch")


def run(code: str) -> str:
    """The output of a script; the test fails where the script does."""
    return debian_torch.output_of([*COMMAND, "-c", code], ENVIRON)
