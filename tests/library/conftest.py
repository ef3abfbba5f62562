"""Logs are named as a user in the project's folder names them."""

from __future__ import annotations

import pytest

from tests.library.commands import ROOT


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
