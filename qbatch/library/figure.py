"""A figure that a notebook displays: a matplotlib figure does so only after pyplot has been set
up."""

from __future__ import annotations

import io
from typing import cast

from matplotlib.figure import Figure

from qbatch.reports.plot_style import styled


def png_of(figure: Figure) -> bytes:
    """Return a picture as PNG."""
    file = io.BytesIO()
    with styled():
        figure.savefig(file, format="png", dpi=110, metadata={"Software": None})
    return file.getvalue()


class ShownFigure(Figure):  # type: ignore[misc, unused-ignore]
    """A matplotlib figure in the style of qbatch that displays itself in a notebook."""

    _repr_png_ = png_of


def shown(figure: Figure) -> ShownFigure:
    """Return the figure as one that displays itself."""
    figure.__class__ = ShownFigure
    return cast(ShownFigure, figure)
