"""Tables and pictures as HTML for a notebook, with all foreign text escaped, no script, and no
style for other elements."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape


def table_html(
    caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]], footer: Sequence[str] = ()
) -> str:
    """Return a table with the first column to the left, the others to the right; ``footer``: lines
    below it."""
    head = "".join(f"<th>{escape(text)}</th>" for text in headings)
    body = "".join(
        "<tr>" + "".join(_cell(text, place) for place, text in enumerate(row)) + "</tr>"
        for row in rows
    )
    lines = "".join(f"<div><small>{escape(line)}</small></div>" for line in footer)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><strong>{escape(caption)}</strong>{table}{lines}</div>"


def _cell(text: str, place: int) -> str:
    side = "left" if place == 0 else "right"
    return f'<td style="text-align: {side}">{escape(text)}</td>'


def picture_html(png: bytes, words: str) -> str:
    """Return a PNG as an image inside the page; ``words``: its description, for readers who cannot
    see it."""
    data = base64.b64encode(png).decode()
    return (
        f'<img style="max-width: 100%; width: 720px" alt="{escape(words)}" '
        f'src="data:image/png;base64,{data}">'
    )
