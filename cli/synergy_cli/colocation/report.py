"""The evaluation as one HTML file."""

from html import escape

from synergy_cli.colocation.evaluate import Evaluation, evaluation_text
from synergy_simulator.report.chart import Line, line_chart
from synergy_simulator.report.page import STYLE

_TITLE = "Fraction of its speed that a job keeps, on models not seen"


def report_page(found: Evaluation) -> str:
    """The figures and the calibration plot; needs nothing else."""
    lines = [
        Line("as predicted", [(0.4, 0.4), (1.2, 1.2)]),
        Line("mean measured", [(one.predicted, one.true) for one in found.calibration]),
        Line("measured, a deviation less", [(one.predicted, one.true - one.deviation) for one in found.calibration]),
        Line("measured, a deviation more", [(one.predicted, one.true + one.deviation) for one in found.calibration]),
    ]
    chart = line_chart(lines, title=_TITLE, x="predicted", y="measured")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Co-location</title><style>{STYLE}</style>'
        f'</head><body><h1>{escape(_TITLE)}</h1><pre>{escape(evaluation_text(found))}</pre><div class="plots">{chart}'
        "</div></body></html>\n"
    )
