"""What a program can check of plain language: banned words and the length of sentences, in
documents and in the code's prose.

``python -m tests.documents.language [PATH ...]`` lists what it finds.  The rules are those of
docs/design.md, "The language".
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.documents.blocks import DOCUMENTS, ROOT

LONGEST = 35
"""Words of a sentence."""

PEOPLE = (
    "people|persons?|users?|anyone|everyone|someone|somebody|those|researchers?|admins?|authors?|operators?|managers?|readers?|"
    "teachers?|students?|newcomers?|developers?"
)
BANNED = {
    r"whom|whose": "a job or a thing is 'it'; write 'of which', 'its', or name it",
    r"who": "a job or a thing is 'it'; 'who' is for people",
    r"nobody|everybody": "write 'no job', 'no user', 'every user'",
    r"houses?": "write 'package', 'project' or 'code'",
    r"rooms?": "write 'package', 'space', 'capacity' or 'free resources'",
    r"beside": "write 'next to', 'with', 'in addition to'",
    r"told|tells?": "a command prints, a table shows, a file contains",
    r"deeds?": "write 'actions' or 'commands'",
    r"by day": "write 'on some days' or leave it out",
    r"guests?|victims?": "write 'trial run' and 'preempted job'",
}
"""Words, as patterns, that the prose of the project does without, and what stands in their
place."""

_PEOPLE_WHO = re.compile(rf"\b(?:{PEOPLE})(?: \w+)? who\b", re.IGNORECASE)
_WORDS = {
    re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE): advice for pattern, advice in BANNED.items()
}
_CODE = re.compile(
    r"```.*?```|``[^`]*``|`[^`]*`|<!--.*?-->|https?://\S+|\]\([^)]*\)|:\w+:", re.DOTALL
)


class Finding(NamedTuple):
    """A place in a file, and what is to be changed there."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.text}"


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence with the place of its first character; a blank line, a list item, a table
    cell end one too."""
    for part in re.finditer(
        r"(?:(?!\n\s*\n|\n\s*(?:[-*|>#]|\d+\.) |[.!?][)\"'*_]*(?:\s|$)| \| ).)+", text, re.DOTALL
    ):
        yield part.start(), part.group()


def findings_in(text: str, path: Path, first: int = 1) -> Iterator[Finding]:
    """Yield what is to be changed in a text that begins at this line of a file."""
    plain = _CODE.sub(lambda found: "x" + "\n" * found.group().count("\n"), text)
    # Lists of numbers and rules: a semicolon and a colon end a sentence, too.
    if path.parent.name == "spec":
        plain = re.sub(r"[;:](?=\s)", ".", plain)
    for place, sentence in sentences(plain):
        if (count := len(re.findall(r"[^\s|]+", sentence))) > LONGEST:
            begin = len(sentence) - len(sentence.lstrip())
            line = first + plain.count("\n", 0, place + begin)
            yield Finding(
                path, line, f"a sentence of {count} words: {' '.join(sentence.split())[:60]} ..."
            )
    of_people = _PEOPLE_WHO.sub(lambda found: "_" * len(found.group()), plain)
    for pattern, advice in _WORDS.items():
        for found in pattern.finditer(of_people):
            yield Finding(
                path,
                first + of_people.count("\n", 0, found.start()),
                f"{found.group()!r}: {advice}",
            )


def prose_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings, comments and messages of a module, each with its first line.

    Strings below a module's constants count as docstrings.  A message is a string of several words.
    """
    for node in ast.walk(ast.parse(source)):
        is_text = (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and len(node.value.split()) > 3
        )
        if is_text and not re.search(r"\{[^}]*;[^}]*\}", node.value):  # which a style sheet has
            yield node.lineno, node.value
    comments: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(
            r"#\s*(noqa|type:|fmt:|pragma)", token.string
        ):
            text = token.string.lstrip("#: ")
            if comments and comments[-1][0] + comments[-1][1].count("\n") + 1 == token.start[0]:
                comments[-1] = (comments[-1][0], f"{comments[-1][1]}\n{text}")
            else:
                comments.append((token.start[0], text))
    yield from comments


def findings(path: Path) -> list[Finding]:
    """Return what is to be changed in a document or a module."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return list(findings_in(text, path))
    return [found for line, prose in prose_of(text) for found in findings_in(prose, path, line)]


def main() -> None:
    """Print what is found in the files that are named, else in all documents and in the whole
    package."""
    paths = [Path(name).resolve() for name in sys.argv[1:]] or [
        *DOCUMENTS,
        *sorted((ROOT / "qbatch").rglob("*.py")),
    ]
    found = [each for path in paths for each in findings(path)]
    print("\n".join(map(str, found)))
    print(f"{len(found)} places in {len(paths)} files", file=sys.stderr)


if __name__ == "__main__":
    main()
