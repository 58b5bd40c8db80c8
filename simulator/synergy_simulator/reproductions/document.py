"""Findings as one HTML file."""

from html import escape

from synergy_simulator.report.document import html_document
from synergy_simulator.report.html_table import html_table
from synergy_simulator.reproductions.common import Findings, interval_rows


def findings_page(name: str, findings: Findings) -> str:
    """One HTML document that needs nothing else."""
    notes = "".join(f"<li>{escape(note)}</li>" for note in findings.differs)
    parts = [html_table(findings.header, findings.rows)]
    after = f"<h2>What differs from the paper</h2><ul>{notes}</ul>"
    if findings.intervals:
        rows = interval_rows(findings)
        parts.append(f"<h2>Figures over seeds</h2>{html_table(('figure', 'mean', '95 % interval'), rows)}")
    return html_document(f"{findings.title} ({name})", parts, findings.charts, after=after)
