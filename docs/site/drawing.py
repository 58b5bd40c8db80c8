"""How all plots of the documentation look. The same figures give the same bytes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.figure import Figure

COLOURS: Final = ("#2563eb", "#d97706", "#059669", "#7c3aed", "#0891b2")
_STYLE: Final = {
    "svg.fonttype": "none",  # text stays text: small files
    "svg.hashsalt": "kube-synergy",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#e2e8f0",
}


@contextmanager
def figure_in(out: Path, *, width: float, height: float) -> Iterator[Figure]:
    """An empty figure of so many inches. At the end it is written to `out` as SVG."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    drawn = out.read_text(encoding="utf-8")
    out.write_text("".join(f"{line.rstrip()}\n" for line in drawn.splitlines()), encoding="utf-8")
