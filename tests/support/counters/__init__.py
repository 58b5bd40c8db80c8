"""Outputs of GPU tools, written after their documented formats (README.md)."""

import shutil
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parent
GPU = "GPU-11111111-2222-3333-4444-555555555555"
"""The GPU whose figures the files have."""


def text(name: str) -> str:
    """A file's text."""
    return (FOLDER / name).read_text(encoding="utf-8")


def build_nvml(folder: Path) -> Path:
    """The folder with a libnvidia-ml.so.1 that knows GPM, made from `nvml.c`."""
    compiler = shutil.which("gcc") or "cc"
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(FOLDER / "nvml.c")], check=True)
    return folder
