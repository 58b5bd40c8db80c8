"""`python -m performance.history`: put the figures of each release into docs/performance.md."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from performance.records import FOLDER
from support.documentation import ROOT
from support.markdown import markdown_table

PAGE = ROOT / "docs" / "performance.md"
_BLOCK = re.compile(r"(?P<mark>^<!-- figures by release: (?P<size>\w+) -->\n\n)(?:\|.*\n)+\n", re.MULTILINE)
Record = Mapping[str, Any]


def records(folder: Path = FOLDER) -> list[Record]:
    """Of all releases, the oldest first."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.json")]
    return sorted(found, key=lambda one: (one["date"], one["release"]))


def table(found: Sequence[Record], size: str) -> str:
    """A row for each figure of the size, a column for each release that has one of them."""
    having = [one for one in found if size in one["sizes"]]
    by_release = {one["release"]: {_name(item): item["ratio"] for item in one["sizes"][size]} for one in having}
    names = list(dict.fromkeys(name for figures in reversed(by_release.values()) for name in figures))
    rows = [
        (f"`{figure}`", load, *(_shown(by_release[release].get((figure, load))) for release in by_release))
        for figure, load in names
    ]
    return markdown_table(("figure", "load", *by_release), rows)


def filled(page: str, found: Sequence[Record]) -> str:
    """The page with the tables of these records."""
    return _BLOCK.sub(lambda block: f"{block['mark']}{table(found, block['size'])}\n\n", page)


def _name(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["figure"], ", ".join(f"{count} {name}" for name, count in item["load"].items())


def _shown(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3g}"


def main(pages: Iterable[Path] = (PAGE,)) -> int:
    """Write the page."""
    for page in pages:
        page.write_text(filled(page.read_text(encoding="utf-8"), records()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
