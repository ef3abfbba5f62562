"""Run the notebooks and keep their outputs: ``python -m tests.library.run_notebooks``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

from tests.documents.blocks import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Return a notebook after running it in a folder."""
    notebook = nbformat.read(path, 4)
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return notebook


def main() -> None:
    """Write each notebook with its outputs."""
    for path in NOTEBOOKS:
        with TemporaryDirectory() as folder:
            notebook = executed(path, Path(folder))
        for cell in notebook.cells:
            cell.get("metadata", {}).pop("execution", None)
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
