"""Tables as HTML."""

from collections.abc import Sequence
from html import escape


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, keys: Sequence[int | None] = ()) -> str:
    """A table that scrolls sideways where it is wider than the page.

    Columns without a value in any row are left out. `keys` are the numbers of the columns' colours.
    """
    shown = [at for at in range(len(header)) if at == 0 or any(row[at] for row in rows)]
    colours = keys or [None] * len(header)
    head = "".join(f"<th>{_key(colours[at])}{escape(header[at])}</th>" for at in shown)
    body = "".join(f"<tr>{''.join(f'<td>{escape(row[at])}</td>' for at in shown)}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def _key(colour: int | None) -> str:
    return "" if colour is None else f'<span class="key" style="background:var(--c{colour})"></span>'
