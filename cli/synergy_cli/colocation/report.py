"""The evaluation as one HTML file."""

from html import escape

from synergy_cli.colocation.evaluate import Evaluation, evaluation_text
from synergy_simulator.report.chart import Chart, Line
from synergy_simulator.report.document import html_document

_TITLE = "Fraction of its speed that a job keeps, on models not seen"


def report_page(found: Evaluation) -> str:
    """The figures and the calibration plot; needs nothing else."""
    points = [(one.predicted, one.true) for one in found.calibration]
    band = [(one.true - one.deviation, one.true + one.deviation) for one in found.calibration]
    lines = [
        Line("as predicted", [(0.4, 0.4), (1.2, 1.2)]),
        Line("mean measured, a deviation around it", points, band=band),
    ]
    chart = Chart(lines, title="Measured beside predicted fraction", x="predicted", y="measured")
    return html_document(_TITLE, [f"<pre>{escape(evaluation_text(found))}</pre>"], [chart])
