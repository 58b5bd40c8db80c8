"""`python -m performance --size large --record 0.3.0`: exit code 1 if a figure is out of its declared range."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from performance import declared, records
from performance.measure import Measured, measure, of_bench
from synergy_cli.bench.e2e.machine import machine
from synergy_cli.text_table import text_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure one size. Exit code 2 for bad input."""
    told = _arguments(arguments)
    about = machine()
    try:
        declaration = declared.declaration(told.size, told.loads)
        report = of_bench(declaration)
    except (declared.DeclarationError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    found: list[Measured] = []
    for one in declaration.figures:
        sys.stderr.write(f"{one.figure} {dict(one.load)}\n")
        try:
            found.append(measure(one, declaration.turns, report))
        except ImportError as error:
            if not told.skip_missing:
                raise
            sys.stderr.write(f"{one.figure} is left out: {error}\n")
    sys.stdout.write(_text(found) + "\n")
    if told.record:
        records.record(told.record, told.date, about, told.records).write(declaration, found)
    return 0 if all(one.within for one in found) else 1


def _text(found: Sequence[Measured]) -> str:
    rows = [
        (
            one.declared.figure,
            ", ".join(f"{count} {name}" for name, count in one.declared.load.items()),
            f"{one.ratio:.3g}",
            str(one.declared.range),
            "yes" if one.within else "NO",
        )
        for one in found
    ]
    return text_table(("figure", "load", "ratio", "range", "within"), rows)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="performance", description=__doc__)
    parser.add_argument("--size", default="large", help="a file of tests/performance/loads")
    parser.add_argument("--record", metavar="RELEASE", help="keep the figures in docs/recorded/performance")
    parser.add_argument("--date", default=f"{datetime.now(UTC):%Y-%m-%d}", help="of the release")
    parser.add_argument("--loads", type=Path, default=declared.FOLDER, help="where the declared loads are")
    parser.add_argument("--records", type=Path, default=records.FOLDER, help="where --record keeps figures")
    parser.add_argument("--skip-missing", action="store_true", help="leave out what an older version does not have")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
