"""The notebooks run, offline, from beginning to end; the blocks of the guide do in
tests/documents/test_blocks.py."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest

from tests.documents.blocks import ROOT
from tests.library.run_notebooks import NOTEBOOKS, executed

DOCUMENT = ROOT / "docs" / "how-to" / "use-in-a-notebook.md"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_speaks_of(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    notebook = executed(path, tmp_path)
    shown = [
        output.data
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "data" in output
    ]
    results = [data for data in shown if "<ReplayResult" in data["text/plain"]]
    assert results
    for data in results:
        assert "<table>" in data["text/html"]
        assert "image/png" in data
    (comparison,) = [data for data in shown if "<Comparison" in data["text/plain"]]
    assert "Mean wait: " in comparison["text/html"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_its_outputs(path: Path) -> None:
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs)
    assert path.stat().st_size < 500_000


def test_there_are_two_notebooks_and_the_document_names_them() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [path.stem for path in NOTEBOOKS] == ["compare-policies", "own-policy"]
    assert all(f"(../notebooks/{path.name})" in text for path in NOTEBOOKS)
