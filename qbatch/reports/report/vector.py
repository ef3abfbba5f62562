"""A matplotlib figure as an SVG inside a page: it takes the page's colours and fonts, and has a description.

Figures are drawn in placeholder colours (``INK``, ``FAINT``, ``SERIES``) that become CSS variables here, so that one picture
suits light and dark mode.  Texts stay texts: readers can search, copy and hear them.
"""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING, Any

from qbatch.reports.plot_style import PALETTE, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#010203"
FAINT = "#010204"
GRID = "#010205"
PAPER = "#010206"
SERIES = tuple(f"#0a0b{place:02x}" for place in range(len(PALETTE)))
"""The placeholders of the series' colours; after the last they repeat, with another line style."""

_VARIABLES = {INK: "--ink", FAINT: "--faint", GRID: "--rule", PAPER: "--paper"} | {
    colour: f"--s{place}" for place, colour in enumerate(SERIES)
}

SIZE = (3.9, 2.65)
"""Width and height of a chart in inches; its texts are readable at a width of 320 pixels."""

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "qbatch",
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.labelsize": 9.5,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "text.color": INK,
    "axes.labelcolor": FAINT,
    "axes.edgecolor": FAINT,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": FAINT,
    "ytick.labelcolor": FAINT,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "path.simplify": True,
}
"""The differences of a page's charts from the style of ``plot_style``."""


def inline_svg(figure: Figure, name: str, title: str, text: str) -> str:
    """Return a figure as an SVG element for a page; ``name`` makes its ids unique, and must be a plain word."""
    out = io.StringIO()
    with styled(STYLE):  # texts become texts or outlines when the figure is written, not when it is drawn
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    head = re.search(r'viewBox="([^"]*)"', svg)
    assert head is not None  # matplotlib always writes one
    body = svg[svg.index(">") + 1 :]
    body = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', body)
    body = re.sub(r'href="#([^"]*)"', rf'href="#{name}-\1"', body)
    body = re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", body)
    body = body.replace("xlink:href", "href")
    body = re.sub(r"'DejaVu Sans'(, *[^;\"]*)?", "inherit", body)
    body = re.sub(r"font: (?:[a-z]+ )*([\d.]+px) inherit", r"font-size: \1", body)
    for colour, variable in _VARIABLES.items():
        body = body.replace(colour, f"var({variable})")
    # Round coordinates to a hundredth of a point; texts between the tags, such as the 0.005 of a tick, stay unchanged.
    body = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d{2})\d+", r"\1", tag[0]), body)
    body = re.sub(r"\n\s*", "\n", body)
    label = f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(text)}</desc>'
    return (
        f'<svg class="chart" viewBox="{head[1]}" role="img" aria-labelledby="{name}-title {name}-desc" '
        f'xmlns="http://www.w3.org/2000/svg">{label}{body}'
    )
