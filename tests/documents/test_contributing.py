"""The checklists of CONTRIBUTING.md name all places: they are counted for something that was added
that way."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.documents.blocks import ROOT
from tests.documents.package_map import PICTURE, picture

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

ADDED = {
    "policy": (
        "equispatial",
        {"qbatch/policies/NAME.py", "qbatch/policies/registry.py"},
        {"qbatch/policies"},
    ),
    "metric": (
        "throughput_per_hour",
        {
            "qbatch/metrics/machine.py",
            "qbatch/metrics/measure.py",
            "qbatch/metrics/table.py",
            "tests/oracle/metrics.py",
            "tests/oracle/test_oracle.py",
        },
        {"qbatch/metrics", "tests/oracle"},
    ),
    "panel of the monitor": (
        "Charts",
        {"qbatch/tui/panels/NAME.py", "qbatch/tui/panels/registry.py"},
        {"qbatch/tui"},
    ),
    "PBS command": (
        "qmsg",
        {
            "qbatch/daemon/handlers/jobs.py",
            "qbatch/cli/pbs/job_commands.py",
            "qbatch/cli/pbs/start.py",
            "qbatch/daemon/commands.py",
        },
        {"qbatch/daemon/handlers", "qbatch/daemon/commands.py", "qbatch/cli"},
    ),
    "paper": (
        "closed-network",
        {"qbatch/papers/registry.py", "qbatch/papers/NAME.py", "qbatch/papers/NAME_claims.py"},
        {
            "qbatch/cli",
            "qbatch/library",
            "qbatch/reports",
            "qbatch/papers/harness.py",
            "qbatch/papers/registry.py",
        },
    ),
}
"""What was added, by its name in the code; the files that its checklist names; the folders in which
the name is looked for."""


@pytest.mark.parametrize("kind", ADDED)
def test_a_checklist_names_all_files(kind: str) -> None:
    name, files, folders = ADDED[kind]
    section = TEXT.partition(f"### To add a {kind}\n")[2].partition("\n##")[0]
    named = {file.replace("`", "") for file in re.findall(r"`[\w/]+\.py`", section)}
    # Named as one of two, or without folder.
    own = {file for file in files if file.endswith(("machine.py", "test_oracle.py"))}
    assert files - named <= own, files - named
    found = subprocess.run(
        ["grep", "-rlw", "--include=*.py", name, *folders],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert {file.replace(f"/{name.lower()}.py", "/NAME.py") for file in found} <= files


def test_the_map_is_drawn_from_the_imports_of_today() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture(), (
        "run: python -m tests.documents.package_map"
    )
