"""Figures of a release, as the documentation keeps them in docs/recorded/performance."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from performance.declared import Declaration
from performance.measure import Measured
from support.documentation import ROOT

FOLDER = ROOT / "docs" / "recorded" / "performance"


def record(release: str, date: str, machine: Mapping[str, Any], folder: Path = FOLDER) -> "Record":
    """The record of a release as it is, or an empty one."""
    file = folder / f"{release}.json"
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return Record(file, {**before, "release": release, "date": date, "machine": dict(machine)})


class Record:
    """One file. Figures of one size replace those of the same size."""

    def __init__(self, file: Path, document: dict[str, Any]) -> None:
        self._file = file
        self._document = document

    def write(self, declaration: Declaration, found: Iterable[Measured]) -> None:
        """Write the figures of one size."""
        figures = [
            {
                "figure": one.declared.figure,
                "load": dict(one.declared.load or declaration.processes),
                "ratio": float(f"{one.ratio:.4g}"),
            }
            for one in found
        ]
        sizes = self._document.setdefault("sizes", {})
        sizes[declaration.size] = figures
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self._document, indent=1) + "\n", encoding="utf-8")
