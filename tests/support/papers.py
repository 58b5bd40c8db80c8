"""The public tables, traces and recordings beside the project, which carries none of them."""

import os
from pathlib import Path

_BESIDE = Path(__file__).parents[3] / "shared" / "data"


def found(name: str) -> Path | None:
    """The folder of that name, under what PAPERS_DATA names or beside the project; None where there is none."""
    folder = Path(os.environ.get("PAPERS_DATA") or _BESIDE) / name
    return folder if folder.is_dir() else None
