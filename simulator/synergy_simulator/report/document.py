"""An HTML document with charts that needs nothing else: the library that draws them is in it."""

import base64
import json
import re
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib import resources
from typing import Any, Final, Protocol

from synergy_simulator.report import assets
from synergy_simulator.report.styles import Style, styles_of

_POLICY: Final = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
"""What the browser lets the page do: it loads nothing, from nowhere."""


class Figure(Protocol):
    """What a page draws: a chart, or which job ran where."""

    @property
    def heading(self) -> str:
        """What it shows, and of what."""

    @property
    def labels(self) -> list[tuple[str, str]]:
        """Group and label of each series."""

    def document(self, styles: dict[str, Style], /) -> dict[str, Any]:
        """What the page's script draws."""

    def csv(self) -> str:
        """What is plotted."""


def html_document(title: str, parts: Sequence[str], figures: Sequence[Figure], *, after: str = "") -> str:
    """One HTML document.

    Args:
        title: of the page, also as its heading.
        parts: HTML above the charts.
        figures: what is drawn, in this order.
        after: HTML below the charts.
    """
    styles = page_styles(figures)
    drawn = [figure.document(styles) for figure in figures]
    data = json.dumps(drawn, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return "".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{style_sheet()}</style></head><body><h1>{escape(title)}</h1>",
            *parts,
            "<noscript><p>The charts need JavaScript. Tables and CSV files do not.</p></noscript>",
            '<div class="figures">',
            *(_section(index, one, drawn[index]["kind"]) for index, one in enumerate(figures)),
            f'</div>{after}<script type="application/json" id="drawn">{data}</script>',
            f"<script>{_library()}</script><script>{_asset('report.js')}</script></body></html>\n",
        ]
    )


def page_styles(figures: Sequence[Figure]) -> dict[str, Style]:
    """The look of each series, the same in all figures of a page."""
    return styles_of(pair for figure in figures for pair in figure.labels)


def _section(index: int, figure: Figure, kind: str) -> str:
    """Where a figure goes, with the link to its CSV."""
    heading = escape(figure.heading)
    text = base64.b64encode(figure.csv().encode()).decode()
    file = f"{re.sub('[^a-z0-9]+', '-', figure.heading.lower()).strip('-')[:60]}.csv"
    note = getattr(figure, "note", "")
    return "".join(
        [
            f'<section class="figure {kind}"><h2>{heading}</h2><div class="legend" aria-label="what is drawn"></div>',
            f'<div class="plot" id="plot-{index}" role="img" aria-label="{heading}"></div>',
            f"<p>{escape(note)}</p>" if note else "",
            f'<p class="get"><a download="{file}" href="data:text/csv;base64,{text}">CSV</a></p></section>',
        ]
    )


@cache
def style_sheet() -> str:
    """The page's style sheet."""
    return _asset("report.css")


def _asset(name: str) -> str:
    return resources.files(assets).joinpath(name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    # by name: images that simulate and write no reports do without it
    return resources.files("synergy_view.assets").joinpath("echarts.min.js").read_text(encoding="utf-8")
