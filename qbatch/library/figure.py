"""A figure that a notebook displays: a matplotlib figure does so only after pyplot has been set up."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, cast

from matplotlib.figure import Figure

from qbatch.reports.plot_style import styled

if TYPE_CHECKING:
    from qbatch.results.result import Result


class ShownFigure(Figure):  # type: ignore[misc, unused-ignore]
    """A matplotlib figure in the style of qbatch that displays itself in a notebook."""

    def _repr_png_(self) -> bytes:
        return png_of(self)


def png_of(figure: Figure) -> bytes:
    """Return a picture as PNG."""
    file = io.BytesIO()
    with styled():
        figure.savefig(file, format="png", dpi=110, metadata={"Software": None})
    return file.getvalue()


def drawn(result: Result, kind: str, *, policies: tuple[str, ...], begin: str | None, end: str | None, title: str | None,
          colour_by: str) -> ShownFigure:  # fmt: skip
    """Return a picture of a result (:func:`qbatch.reports.plots.draw`) that displays itself."""
    from qbatch.reports.plots import draw

    figure = draw(result, kind, policies=policies, begin=begin, end=end, title=title, colour_by=colour_by)
    figure.__class__ = ShownFigure
    return cast(ShownFigure, figure)
