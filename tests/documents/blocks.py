"""The blocks of code of the Markdown documents, each with its place and with what its page asks a
test to do with it.

A comment of HTML before a block, which a reader of the page does not see, is for the test:

- ``<!-- not run: REASON -->``: the block is not typed or executed; options of ``qbatch`` lines are
  still read by its parser;
- ``<!-- before: COMMAND -->``: typed before the block: what the reader has done by then;
- ``<!-- file: NAME -->``: the block is written to a file of this name before the page is run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [
        *(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"),
        ROOT / "systemd" / "README.md",
        ROOT / "traces" / "README.md",
        *(ROOT / "docs").rglob("*.md"),
    ]
)
_FENCE = re.compile(r"( *)(```+)(.*)")
_ASKED = re.compile(r" *<!-- (not run|before|file): (.*?) -->")


@dataclass(frozen=True)
class Block:
    """A block: its document, the line of its first line, its language, its lines, and what the page
    asks of a test."""

    document: str
    line: int
    language: str
    lines: tuple[str, ...]
    not_run: str = ""
    before: str = ""
    file: str = ""

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def name(self) -> str:
        return f"{self.document}:{self.line}"


def blocks_of(path: Path) -> list[Block]:
    """Return the fenced blocks of a document; a fence that is never closed is a fault of the
    document."""
    document = str(path.relative_to(ROOT))
    lines = path.read_text(encoding="utf-8").splitlines()
    found: list[Block] = []
    asked: dict[str, str] = {}
    place = 0
    while place < len(lines):
        if comment := _ASKED.fullmatch(lines[place]):
            asked[comment[1].replace(" ", "_")] = comment[2]
        elif fence := _FENCE.fullmatch(lines[place]):
            indent, ticks, language = fence.groups()
            end = lines.index(indent + ticks, place + 1)
            inner = tuple(line.removeprefix(indent) for line in lines[place + 1 : end])
            found.append(Block(document, place + 2, language.strip(), inner, **asked))
            asked, place = {}, end
        elif lines[place].strip():
            assert not asked, (
                f"{document}:{place + 1}: a comment for the tests stands before no block"
            )
        place += 1
    return found


def every_block() -> list[Block]:
    """Return the blocks of all documents."""
    return [block for path in DOCUMENTS for block in blocks_of(path)]


def commands(block: Block) -> list[str]:
    """Return the lines of a block for a shell; a line that ends in a backslash is one with the
    next."""
    joined: list[str] = []
    for line in block.lines:
        if joined and joined[-1].endswith("\\"):
            joined[-1] += "\n" + line
        else:
            joined.append(line)
    return [line for line in joined if line.strip() and not line.lstrip().startswith("#")]
