"""Plain text tables."""

from collections.abc import Sequence

from synergy_view.words import printable


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to the widest cell; numbers, percentages and a dash are aligned to the right. No cell can add a
    line to the table."""
    header, *rows = [[printable(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    right = [bool(rows) and all(_numeric(row[column]) for row in rows) for column in range(len(header))]
    lines = [
        "  ".join(cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in cells).rstrip()
        for cells in (zip(row, widths, right, strict=True) for row in [header, *rows])
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths).rstrip(), *lines[1:]])


def _numeric(cell: str) -> bool:
    return cell == "-" or cell.rstrip("%x").replace(".", "", 1).replace(",", "").isdigit()
