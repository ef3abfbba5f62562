"""The generated parts of the reference are what the program knows today."""

from __future__ import annotations

import pytest

from tests.documents.reference import PARTS, REFERENCE, generated

PAGES = sorted(
    path for path in REFERENCE.glob("*.md") if "<!-- generated:" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_generated_part_is_up_to_date(path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == generated(text), "run: python -m tests.documents.reference"


def test_every_part_stands_in_a_page() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    assert all(texts.count(f"<!-- generated: {name} -->") == 1 for name in PARTS)
