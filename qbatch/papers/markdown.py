"""A paper's record as one Markdown document: the command, how claims are judged, verdicts,
explanations, every table.

It is made from the record in ``tables.json``, so the two cannot differ.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qbatch.papers.record import CONTRADICTED, FAILS, table_of

_ANSWERS = ("yes", "no", "open")


def markdown_of(record: Mapping[str, Any]) -> str:
    """Return the document of a record of ``qbatch paper``; pictures are links to files in the same
    folder."""
    return "\n\n".join(_blocks(record)) + "\n"


def _blocks(record: Mapping[str, Any]) -> Iterator[str]:
    paper = record["paper"]
    yield f"# {paper['title']}"
    yield f"{paper['authors']}, {paper['source']}. Made by qbatch {record['version']}:"
    yield f"    {shlex.join(record['command'])}"
    yield "\n".join(f"* {item}" for item in (*_ran_on(record), *map(_text, record["notes"])))
    if record["method"]:
        yield "## How a claim is judged"
        yield from record["method"]
    yield from _verdicts(record["claims"])
    yield from _tables(record)


def _ran_on(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the input of the run, an item each: the log or the machine, and the options."""
    if "log" in record:
        log = record["log"]
        yield f"log: {_text(log['name'])}, {log['rows']:,} rows, SHA-256 {log['sha256'] or 'none'}"
    for log in record.get("logs", ()):
        digest = log["sha256"] or "none"
        yield f"log: {_text(log['name'])}, {log['procs']:,} processors, {log['subsets']} subsets, SHA-256 {digest}"
    for name, value in record["options"].items():
        if value is not None:
            shown = ", ".join(str(one) for one in value) if isinstance(value, list) else str(value)
            yield f"{name.replace('_', ' ')}: {shown}"


def _verdicts(claims: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "## Verdicts"
    if not claims:
        yield "No claim was checked."
        return
    verdicts = [claim["verdict"] for claim in claims]
    counts = (f"{one}: {verdicts.count(one)}" for one in dict.fromkeys(verdicts))
    yield f"{len(claims)} claims. {', '.join(counts).capitalize()}."
    has_answers = any(claim["answers"] for claim in claims)
    rows = []
    for claim in claims:
        answers = (
            [str(claim["answers"].get(answer, "-")) for answer in _ANSWERS] if has_answers else []
        )
        rows.append(
            [
                f"{claim['name']}: {claim['text']}",
                f"**{claim['verdict']}**",
                *answers,
                claim["numbers"],
            ]
        )
    yield _table(["claim", "verdict", *(_ANSWERS if has_answers else ()), "numbers"], rows)
    together = [
        [claim["name"], claim["verdict"], claim["together"]]
        for claim in claims
        if claim["together"]
    ]
    if together:
        yield "### Taken together"
        over = "the mean of all months, loads or d, or over logs of resampled weeks"
        yield f"What the comparisons say over {over}; no part of a verdict."
        yield _table(["claim", "verdict", "together"], together)
    for verdict, heading in (
        (CONTRADICTED, "Where the paper contradicts itself"),
        (FAILS, "What does not hold, and our best explanation"),
    ):
        explained = [claim for claim in claims if claim["verdict"] == verdict and claim["why"]]
        if explained:
            yield f"### {heading}"
            yield "\n".join(f"* **{claim['name']}**: {_text(claim['why'])}." for claim in explained)


def _tables(record: Mapping[str, Any]) -> Iterator[str]:
    if record["tables"]:
        yield "## Tables"
    names = [document["name"] for document in record["tables"]]
    links: dict[str | None, list[str]] = {}
    for picture in record["pictures"]:
        links.setdefault(_table_of(picture, names), []).append(f"![{picture}]({picture}.png)")
    for document in record["tables"]:
        table = table_of(document)
        yield f"### {_text(table.title)}"
        yield _table([column.heading for column in table.shown], table.texts())
        yield from (f"Note: {_text(note)}." for note in table.notes)
        yield from links.get(table.name, ())
    yield from links.get(None, ())


def _table_of(picture: str, names: Sequence[str]) -> str | None:
    """Return the table of a picture: the one of the same name, or of a name with which that of the
    picture begins."""
    if picture in names:
        return picture
    return next((name for name in names if picture.startswith(f"{name}-")), None)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in (headings, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(headings), *lines[1:]])


def _cell(text: str) -> str:
    """Return text for a cell; what is bold stays bold."""
    is_bold = text.startswith("**") and text.endswith("**")
    inner = _text(text[2:-2] if is_bold else text)
    return f"**{inner}**" if is_bold else inner


def _text(text: str) -> str:
    """Return text without any mark of Markdown."""
    for mark in ("\\", "|", "*", "<", "["):
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ")
