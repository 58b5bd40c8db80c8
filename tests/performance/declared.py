"""What a file of `loads/` declares: the load of each figure, and the range in which its ratio is expected."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from performance.figures import NAMES, PROCESSES

FOLDER = Path(__file__).parent / "loads"


class DeclarationError(Exception):
    """A file that declares something else than figures with ranges."""


@dataclass(frozen=True)
class Range:
    """Both ends included."""

    least: float
    most: float

    def __contains__(self, ratio: float) -> bool:
        return self.least <= ratio <= self.most

    def __str__(self) -> str:
        """In words."""
        if math.isinf(self.most):
            return f"at least {self.least:g}"
        return f"{self.least:g} to {self.most:g}" if self.least else f"at most {self.most:g}"


@dataclass(frozen=True)
class Declared:
    """One figure. `load` is what it is made from; empty for those of `bench e2e`, which share one load."""

    figure: str
    load: Mapping[str, int]
    range: Range


@dataclass(frozen=True)
class Declaration:
    """All figures of one size. `processes` is the load of `bench e2e`, empty without such figures."""

    size: str
    turns: int
    figures: tuple[Declared, ...]
    processes: Mapping[str, int]


def declaration(size: str, folder: Path = FOLDER) -> Declaration:
    """What `folder/size.yaml` declares. Raises DeclarationError, which names the file and the entry."""
    file = folder / f"{size}.yaml"
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DeclarationError(f"{file}: there is no such file") from None
    except yaml.YAMLError as error:
        raise DeclarationError(f"{file}: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("figures"), list):
        raise DeclarationError(f"{file}: needs a list of figures")
    figures = tuple(_declared(file, item) for item in document["figures"])
    processes = document.get("processes", {})
    if any(one.figure in PROCESSES for one in figures) and not processes:
        raise DeclarationError(f"{file}: needs `processes`, the load of bench e2e")
    return Declaration(size, int(document.get("turns", 5)), figures, processes)


def _declared(file: Path, item: Any) -> Declared:
    name = item.get("figure") if isinstance(item, dict) else None
    if name not in NAMES:
        raise DeclarationError(f"{file}: {name!r}: there is no such figure; there are {', '.join(NAMES)}")
    if unknown := set(item) - {"figure", "load", "least", "most"}:
        raise DeclarationError(f"{file}: {name}: takes figure, load, least and most, not {', '.join(sorted(unknown))}")
    ends = Range(float(item.get("least", 0.0)), float(item.get("most", math.inf)))
    if not {"least", "most"} & set(item) or ends.least > ends.most:
        raise DeclarationError(f"{file}: {name}: needs a range, `most`, `least` or both")
    return Declared(name, item.get("load", {}), ends)
