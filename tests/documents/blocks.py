"""The blocks of code of a Markdown file, fenced and indented, each with its place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [ROOT / "README.md", ROOT / "systemd" / "README.md", ROOT / "traces" / "README.md", *(ROOT / "docs").glob("*.md")]
)
INDENT = "    "


@dataclass(frozen=True)
class Block:
    """A block: the document, the line of its first line, its language (``""`` if it is indented) and its lines."""

    document: str
    line: int
    language: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def name(self) -> str:
        return f"{self.document}:{self.line}"


def blocks_of(path: Path) -> list[Block]:
    """Return the blocks of a document; a fence that is never closed is a fault of the document."""
    document = str(path.relative_to(ROOT))
    lines = path.read_text(encoding="utf-8").splitlines()
    found: list[Block] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        begin = place
        if line.startswith("```"):
            place = lines.index("```", place + 1)
            found.append(Block(document, begin + 2, line[3:].strip(), tuple(lines[begin + 1 : place])))
        elif line.startswith(INDENT) and (place == 0 or not lines[place - 1].strip()):
            while place < len(lines) and (lines[place].startswith(INDENT) or not lines[place].strip()):
                place += 1
            inner = [each.removeprefix(INDENT) for each in lines[begin:place]]
            while not inner[-1]:
                inner.pop()
            found.append(Block(document, begin + 1, "", tuple(inner)))
            continue
        place += 1
    return found


def every_block() -> list[Block]:
    """Return the blocks of all documents."""
    return [block for path in DOCUMENTS for block in blocks_of(path)]


def commands(block: Block) -> list[str]:
    """Return the lines of a block for a shell; a line that ends in a backslash is one with the next."""
    joined: list[str] = []
    for line in block.lines:
        if joined and joined[-1].endswith("\\"):
            joined[-1] += "\n" + line
        else:
            joined.append(line)
    return [line for line in joined if line.strip() and not line.lstrip().startswith("#")]
