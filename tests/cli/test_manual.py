"""Manual pages: one for each command, made from its help, which man renders without a warning."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import pytest

from qbatch.cli.main import COMMANDS
from qbatch.cli.manual import PBS_COMMANDS, escaped, pages, write
from qbatch.cli.pbs.start import command_of
from tests.cli.pbs.test_processes import PBS_COMMANDS as TRIED

ROOT = Path(__file__).parents[2]
# What is built has only what pyproject.toml asks for to build with.
ABSENT = (
    "numpy",
    "numba",
    "llvmlite",
    "aiosqlite",
    "matplotlib",
    "pyarrow",
    "jinja2",
    "textual",
    "pooch",
    "distributed",
)


def test_every_command_has_a_page() -> None:
    found = pages()
    assert set(found) == {
        "qbatch.1",
        *(f"{name}.1" for name in TRIED),
        *(f"qbatch-{name}.1" for name in COMMANDS),
    }
    assert all(text.startswith('.TH "') and text.endswith("\n") for text in found.values())


@pytest.mark.parametrize("name", PBS_COMMANDS)
def test_every_option_is_explained_in_the_help_and_in_the_page(name: str) -> None:
    page = pages()[f"{name}.1"]
    out = subprocess.run(
        [sys.executable, "-c", f"from qbatch.cli.pbs.start import {name}; {name}()", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert out.startswith(f"usage: {name}")
    for letter, (argument, meaning) in command_of(name).options.items():
        assert f"\n  -{letter}{f' {argument}' if argument else ''}" in out
        assert " ".join(meaning.split()) in " ".join(out.split())
        assert f"\\fB\\-{letter}\\fR" in page
        assert escaped(meaning) in page


def test_a_page_of_qbatch_has_what_its_help_has() -> None:
    page = pages()["qbatch-replay.1"]
    assert "\\fB\\-p, \\-\\-policy <list[str]>\\fR" in page
    assert "\\fBqbatch replay\\fR [OPTIONS] [LOG]" in page
    page = pages()["qbatch-trace.1"]
    assert all(f".SH {part}" in page for part in ("INFO", "HEAD", "VALIDATE", "GET"))


def test_a_command_with_exit_codes_of_its_own_has_them_in_its_page() -> None:
    pages_ = pages()
    assert "the server refuses a start" in pages_["qrun.1"]
    assert "unknown job" not in pages_["qrun.1"]
    assert "unknown job" in pages_["qdel.1"]
    assert "outside of a job" in pages_["pbsdsh.1"]


def test_nothing_in_a_text_is_a_request() -> None:
    assert escaped(".so /etc/passwd") == "\\&.so /etc/passwd"
    assert escaped("'br a\\n-~^`") == "\\&'br a\\en\\-\\(ti\\(ha\\(ga"


def test_man_renders_every_page_without_a_warning(tmp_path: Path) -> None:
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("no man and groff here")
    write(tmp_path)
    found = sorted(map(str, tmp_path.glob("*.1")))
    done = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", *found],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    assert done.stderr == ""
    shown = " ".join(done.stdout.replace("\b", "").split())
    assert "QBATCH-SWEEP(1)" in shown
    assert "pbsdsh [-c copies] [-s] [-v] [-o] -- program [arg...]" in shown


def test_pages_are_made_where_only_the_build_requirements_are(tmp_path: Path) -> None:
    code = (
        f"import pathlib, sys; sys.modules.update(dict.fromkeys({ABSENT!r})); "
        f"from qbatch.cli.manual import write; write(pathlib.Path({str(tmp_path)!r}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == pages()


def test_pages_are_installed_with_the_package() -> None:
    installed = {
        path.name for path in files("qbatch-emulator") or () if path.parts[-3:-1] == ("man", "man1")
    }
    assert {"qbatch.1", "qsub.1", "qbatch-replay.1"} <= installed
