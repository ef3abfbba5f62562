"""What the code, the tests and the documents cite is there: sections of the specification and the
design, files of the code."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.documents.blocks import DOCUMENTS, ROOT

CITING = sorted(path for folder in ("qbatch", "tests") for path in (ROOT / folder).rglob("*.py"))
NAMES = "papers|pbs|workloads|production|reliability|design|style"
CITED = re.compile(
    rf"(?P<file>[\w/-]*\b(?:{NAMES})\.md)"
    r'(?:[,:]?\s+(?:"(?P<title>[^"]+)"|(?:sections?\s+|part\s+|table\s+|worked '
    r"case\s+)?(?P<section>[A-Z]?-?\d[\d.]*)))?"
)


@cache
def headings(path: Path) -> list[str]:
    """Return the titles of a page, without their signs."""
    return re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)


def citations(path: Path) -> list[re.Match[str]]:
    text = re.sub(r"\n[ #]*", " ", path.read_text(encoding="utf-8"))
    return list(CITED.finditer(text))


@pytest.mark.parametrize(
    "path",
    [path for path in CITING if citations(path)],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_what_is_cited_is_there(path: Path) -> None:
    if path == Path(__file__):
        pytest.skip("its patterns are no citations")
    for found in citations(path):
        page = ROOT / found["file"]
        assert page.is_file(), (
            f"{found.group()}: cite docs/design.md, docs/style.md or docs/spec/NAME.md"
        )
        if found["title"]:
            assert found["title"] in headings(page), found.group()
        elif found["section"]:
            number = found["section"].rstrip(".")
            begins = re.compile(
                rf"(?:Part |Table |Worked case )?{re.escape(number)}(?![\d])", re.IGNORECASE
            )
            assert any(begins.match(title) for title in headings(page)), found.group()


PATHS = re.compile(
    r"(?<![\w./])(?:qbatch|tests|docs|traces)/(?![\w/]*NAME)[\w./-]*\.(?:py|md|toml|swf)\b"
)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_of_the_code_that_a_document_names_is_there(path: Path) -> None:
    assert [
        name
        for name in PATHS.findall(path.read_text(encoding="utf-8"))
        if not (ROOT / name).is_file()
    ] == []
