"""What the documents name in passing exists: options of commands, exit codes, the way to install an
extra."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import typer

from qbatch.cli.main import app
from qbatch.cli.manual import EXIT_CODES
from qbatch.distribution import NAME, install_command
from qbatch.model import errors
from qbatch.wire.errors import CODES
from tests.documents.blocks import DOCUMENTS

PROSE = {path: " ".join(path.read_text(encoding="utf-8").split()) for path in DOCUMENTS}
NAMED = sorted(
    {
        (path.name, found[1], found[2])
        for path, text in PROSE.items()
        if path.parent.name != "spec"  # which describes other programs, and what is to come
        for found in re.finditer(r"`(qsub|qbatch [a-z]+(?: [a-z]+)?) (--[a-z][a-z-]+)", text)
    }
)


def options_of(words: list[str]) -> set[str]:
    """Return the options of a command of qbatch."""
    found = typer.main.get_command(app)
    for word in words:
        inner = found.get_command(None, word) if hasattr(found, "get_command") else None  # type: ignore[arg-type]
        if inner is None:
            break
        found = inner
    own = {
        option
        for parameter in found.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    return {*own, "--help", "--version"}


@pytest.mark.parametrize(("document", "command", "option"), NAMED)
def test_an_option_that_a_document_names_exists(document: str, command: str, option: str) -> None:
    if command == "qsub":
        said = subprocess.run(
            [sys.executable, "-c", "from qbatch.cli.pbs.start import qsub; qsub()", "--help"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert option in said.stdout + said.stderr
    else:
        assert option in options_of(command.split()[1:])


def test_every_exit_code_is_documented() -> None:
    codes = {
        each.exit_code
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, errors.QbatchError)
    }
    codes |= {code for _, code in CODES.values()}
    # From which the reference is generated.
    assert {str(code) for code in codes | {0, 130}} <= EXIT_CODES.keys()


def test_no_document_installs_a_distribution_that_is_not_published() -> None:
    assert install_command("report") == "pip install '.[report]' in the folder of the sources"
    for path, text in PROSE.items():
        assert f"{NAME}[" not in text, path.name
