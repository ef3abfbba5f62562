"""Pictures of papers are many: here they have few pixels, and a command writes as many forms of
them as its test looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from qbatch.cli import paper
from qbatch.reports import plot_style


@pytest.fixture(autouse=True, scope="package")
def _few_pixels() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(plot_style._STYLE, "savefig.dpi", 30)
        yield


@pytest.fixture(scope="module")
def forms() -> Iterator[Callable[..., None]]:
    """Return what names the forms in which the commands of this module write their pictures from
    here on."""
    with pytest.MonkeyPatch.context() as patch:
        yield lambda *names: patch.setattr(paper, "_FORMS", names)
