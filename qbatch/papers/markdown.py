"""A paper's record as one Markdown document: the command, how claims are judged, verdicts, explanations, every table.

It is made from the record in ``tables.json``, so the two cannot differ.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qbatch.papers.record import CONTRADICTED, FAILS, table_of

_ANSWERS = ("yes", "no", "open")


def markdown_of(record: Mapping[str, Any]) -> str:
    """Return the document of a record of ``qbatch paper``; pictures are links to files in the same folder."""
    return "\n".join(_lines(record)).rstrip() + "\n"


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    paper = record["paper"]
    yield f"# {paper['title']}"
    yield ""
    yield f"{paper['authors']}, {paper['source']}. Made by qbatch {record['version']}:"
    yield ""
    yield f"    {shlex.join(record['command'])}"
    yield ""
    yield from _ran_on(record)
    yield from (f"* {_text(note)}" for note in record["notes"])
    yield ""
    if record["method"]:
        yield "## How a claim is judged"
        yield ""
        for paragraph in record["method"]:
            yield paragraph
            yield ""
    yield from _verdicts(record["claims"])
    yield from _tables(record)


def _ran_on(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the input of the run, an item each: the log or the machine, and the options."""
    if "log" in record:
        log = record["log"]
        yield f"* log: {_text(log['name'])}, {log['rows']:,} rows, SHA-256 {log['sha256'] or 'none'}"
    for log in record.get("logs", ()):
        digest = log["sha256"] or "none"
        yield f"* log: {_text(log['name'])}, {log['procs']:,} processors, {log['subsets']} subsets, SHA-256 {digest}"
    for name, value in record["options"].items():
        if value is not None:
            shown = ", ".join(str(one) for one in value) if isinstance(value, list) else str(value)
            yield f"* {name.replace('_', ' ')}: {shown}"


def _verdicts(claims: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "## Verdicts"
    yield ""
    verdicts = [claim["verdict"] for claim in claims]
    counts = (f"{one}: {verdicts.count(one)}" for one in dict.fromkeys(verdicts))
    yield f"{len(claims)} claims. {', '.join(counts).capitalize()}." if claims else "No claim was checked."
    yield ""
    if not claims:
        return
    has_answers = any(claim["answers"] for claim in claims)
    headings = ["claim", "verdict", *(_ANSWERS if has_answers else ()), "numbers"]
    rows = []
    for claim in claims:
        answers = [str(claim["answers"].get(answer, "-")) for answer in _ANSWERS] if has_answers else []
        rows.append([f"{claim['name']}: {claim['text']}", f"**{claim['verdict']}**", *answers, claim["numbers"]])
    yield from _table(headings, rows)
    together = [[claim["name"], claim["verdict"], claim["together"]] for claim in claims if claim["together"]]
    if together:
        yield "### Taken together"
        yield ""
        over = "the mean of all months, loads or d, or over logs of resampled weeks"
        yield f"What the comparisons say over {over}; no part of a verdict."
        yield ""
        yield from _table(["claim", "verdict", "together"], together)
    for verdict, heading in (
        (CONTRADICTED, "Where the paper contradicts itself"), (FAILS, "What does not hold, and our best explanation")
    ):  # fmt: skip
        explained = [claim for claim in claims if claim["verdict"] == verdict and claim["why"]]
        if explained:
            yield f"### {heading}"
            yield ""
            yield from (f"* **{claim['name']}**: {_text(claim['why'])}." for claim in explained)
            yield ""


def _tables(record: Mapping[str, Any]) -> Iterator[str]:
    if record["tables"]:
        yield "## Tables"
        yield ""
    pictures = list(record["pictures"])
    names = [document["name"] for document in record["tables"]]
    for document in record["tables"]:
        table = table_of(document)
        yield f"### {_text(table.title)}"
        yield ""
        yield from _table([column.heading for column in table.shown], table.texts())
        for note in table.notes:
            yield f"Note: {_text(note)}."
            yield ""
        yield from _pictures([name for name in pictures if _table_of(name, names) == table.name])
    yield from _pictures([name for name in pictures if _table_of(name, names) is None])


def _pictures(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield f"![{name}]({name}.png)"
        yield ""


def _table_of(picture: str, names: Sequence[str]) -> str | None:
    """Return the table of a picture: the one of the same name, or of a name with which that of the picture begins."""
    if picture in names:
        return picture
    return next((name for name in names if picture.startswith(f"{name}-")), None)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(_cell(heading) for heading in headings) + " |"
    yield "|" + "---|" * len(headings)
    for row in rows:
        yield "| " + " | ".join(_cell(cell) for cell in row) + " |"
    yield ""


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
