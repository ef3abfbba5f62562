"""The documents and the code are in plain language, as far as a program can check it."""

from __future__ import annotations

import re

import pytest

from tests.documents.blocks import DOCUMENTS, ROOT
from tests.documents.language import findings, findings_in

WRITTEN_BY_A_COMMAND = "-results.md"
"""Verdicts of papers, as ``qbatch paper`` wrote them, are lists of numbers."""

ABOUT_THE_WORDS = ("tests/documents/language.py", "tests/documents/test_language.py")

DATA = re.compile(
    r"a sentence of \d+ words: (.* = |import |def |.*( -?[\d.]+;?){5}|vnode state |Queue Max |Job "
    r"ID )"
)
"""How long sentences begin that are data of a test: TOML, scripts, logs, tables of numbers,
listings of PBS."""


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_is_in_plain_language(path) -> None:
    if path.name.endswith(WRITTEN_BY_A_COMMAND):
        pytest.skip("its words are those of the code")
    assert [str(found) for found in findings(path)] == []


def test_what_is_not_plain_is_found_with_its_line() -> None:
    text = (
        "A job waits.\n\nNobody knows whose job it is; it is told.\n\n"
        + "word " * 36
        + "end.\n\nUsers who wait go `who`.\n"
    )
    found = [
        (each.line, each.text.partition(":")[0]) for each in findings_in(text, ROOT / "page.md")
    ]
    assert found == [(5, "a sentence of 37 words"), (3, "'whose'"), (3, "'Nobody'"), (3, "'told'")]


def test_docstrings_comments_and_messages_are_in_plain_language() -> None:
    modules = sorted((ROOT / "qbatch").rglob("*.py"))
    assert [str(found) for path in modules for found in findings(path)] == []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        if name not in ABOUT_THE_WORDS:
            assert [str(each) for each in findings(path) if not DATA.match(each.text)] == []
