"""Findings as one HTML file."""

from html import escape

from synergy_simulator.report.page import STYLE
from synergy_simulator.reproductions.common import Findings


def findings_page(name: str, findings: Findings) -> str:
    """One HTML document that needs nothing else."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in findings.header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in findings.rows)
    notes = "".join(f"<li>{escape(note)}</li>" for note in findings.differs)
    return "".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f"<title>{escape(name)}</title><style>{STYLE}</style></head><body><h1>{escape(findings.title)}</h1>",
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>",
            f"<h2>What differs from the paper</h2><ul>{notes}</ul>",
            f'<div class="plots">{"".join(findings.charts)}</div></body></html>\n',
        ]
    )
