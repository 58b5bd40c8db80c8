"""Draw the figures of each release over those of the newest: above 1 a release was slower or larger.

    python docs/site/history.py [RECORDS [FILE]]

Reads RECORDS/RELEASE.json (default: docs/recorded/performance), which `make performance RELEASE=...` writes, and
writes FILE (default: docs/images/performance.svg).
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from drawing import COLOURS, figure_in

DOCS: Final = Path(__file__).parents[1]
Figure = tuple[str, str]


def figures(record: Mapping[str, Any]) -> dict[Figure, float]:
    """The ratios of a record by figure and load."""
    found = {}
    for items in record["sizes"].values():
        for item in items:
            found[item["figure"], json.dumps(item["load"])] = float(item["ratio"])
    return found


def relative(records: Sequence[Mapping[str, Any]]) -> dict[str, list[float | None]]:
    """By figure: of each record its ratio over that of the last, of the largest load that two records have. A figure
    that the last record lacks, that is 0 there, or that no other has is left out."""
    every = [figures(record) for record in records]
    found: dict[str, list[float | None]] = {}
    for key, last in every[-1].items():
        if last and any(key in one for one in every[:-1]):
            found[key[0]] = [one[key] / last if key in one else None for one in every]
    return found


def draw(records: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Write the plot of records, the oldest first."""
    found = relative(records)
    releases = [record["release"] for record in records]
    with figure_in(out, width=7.0, height=3.6) as figure:
        axes = figure.subplots()
        axes.set_title(f"Ratios to the references, relative to {releases[-1]}", fontsize=9)
        for index, (name, values) in enumerate(found.items()):
            style = ("-", "--", ":")[index // len(COLOURS) % 3]
            there = [(place, value) for place, value in enumerate(values) if value is not None]
            colour = COLOURS[index % len(COLOURS)]
            axes.plot(*zip(*there, strict=True), marker="o", linestyle=style, color=colour, label=name)
        axes.axhline(1.0, color="#94a3b8", linewidth=0.8)
        axes.set_xticks(range(len(releases)), releases)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.set_ylabel("times the newest")
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


def main(arguments: Sequence[str]) -> int:
    """Draw all records."""
    folder = Path(arguments[0]) if arguments else DOCS / "recorded" / "performance"
    out = Path(arguments[1]) if len(arguments) > 1 else DOCS / "images" / "performance.svg"
    records = [json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.json")]
    if not records:
        print(f"{folder}: there are no records", file=sys.stderr)  # noqa: T201 - a command
        return 1
    draw(sorted(records, key=lambda one: (one["date"], one["release"])), out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
