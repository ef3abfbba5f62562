"""The step of the build that writes the manual pages: they go into share/man/man1 of the
environment."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManualPages(BuildHookInterface):  # type: ignore[misc,type-arg]
    """Makes the pages from the help of the commands (qbatch/cli/manual.py)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the pages and have them installed, by an editable installation too."""
        sys.path.insert(0, self.root)
        try:
            from qbatch.cli.manual import write
        finally:
            sys.path.remove(self.root)
        self._pages = tempfile.TemporaryDirectory(prefix="qbatch-man-")
        write(Path(self._pages.name))
        build_data["shared_data"][self._pages.name] = "share/man/man1"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Take the pages away that the wheel holds now."""
        self._pages.cleanup()
