"""The parts of the reference that the program knows: ``python -m tests.documents.reference`` writes
them anew.

A part stands in its page between ``<!-- generated: NAME -->`` and ``<!-- end -->``; the text around
it is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator

import typer

from qbatch.cli.main import COMMANDS, app
from qbatch.cli.manual import EXIT_CODES, PBS_COMMANDS, PBS_EXIT_CODES, VARIABLES, _context
from qbatch.cli.pbs.command import code_of, help_of
from qbatch.cli.pbs.start import command_of
from qbatch.daemon.settings import KEYS
from qbatch.metrics.table import METRICS
from qbatch.policies.registry import POLICIES
from qbatch.wire import errors, requests
from qbatch.workloads.cluster import MARGINALS, generate_cluster
from qbatch.workloads.tables.table_map import SHIPPED
from tests.documents.blocks import ROOT

REFERENCE = ROOT / "docs" / "reference"
_PART = re.compile(r"(<!-- generated: ([\w -]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def cell(text: str) -> str:
    """Return a text as a cell of a table takes it."""
    return (
        " ".join(text.split())
        .replace("|", "\\|")
        .replace("``", "`")
        .replace("<", "&lt;")
        .replace("*", "\\*")
    )


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    names = list(heads)
    yield from ("", f"| {' | '.join(names)} |", "|" + "---|" * len(names))
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def qbatch_commands() -> Iterator[str]:
    """Yield each command of qbatch with its usage, its text, its arguments and options."""
    group = typer.main.get_command(app)
    yield from ("", "### Options before the command", *_parameters(group, "qbatch"))
    for name in COMMANDS:
        command = group.get_command(None, name)  # type: ignore[attr-defined]
        parts = getattr(command, "commands", {})
        yield from (f"### qbatch {name}", "")
        if parts:
            yield from (_paragraphs(str(command.help)), "")
        for words, each in [(f"qbatch {name} {part}", one) for part, one in parts.items()] or [
            (f"qbatch {name}", command)
        ]:
            if parts:
                yield from (f"#### {words}", "")
            usage = " ".join(each.collect_usage_pieces(_context(each, words)))
            yield from (
                "```text",
                f"{words} {usage}",
                "```",
                "",
                _paragraphs(str(each.help)),
                *_parameters(each, words),
            )


def _paragraphs(text: str) -> str:
    return "\n\n".join(
        " ".join(part.split()).replace("``", "`") for part in re.split(r"\n\s*\n", text.strip())
    )


def _parameters(command: object, words: str) -> Iterator[str]:
    context = _context(command, words)
    records = (parameter.get_help_record(context) for parameter in command.get_params(context))  # type: ignore[attr-defined]
    rows = [
        (f"`{cell(term)}`".replace("&lt;", "<"), cell(text)) for term, text in filter(None, records)
    ]
    yield from table(("argument or option", "meaning"), rows)


def pbs_commands() -> Iterator[str]:
    """Yield each PBS command with its usage and its options."""
    for name in PBS_COMMANDS:
        command = command_of(name)
        summary, paragraphs, options = help_of(command)
        yield from (f"### {name}", "", f"{summary[0].upper()}{summary[1:]}.", "", "```text")
        yield from (*re.sub(r"\n\s*", "\n    ", command.usage.strip()).splitlines(), "```")
        for paragraph in paragraphs:
            yield from ("", paragraph.replace("``", "`"))
        rows = [
            (f"`{option}{f' {argument}' if argument else ''}`", cell(text))
            for option, argument, text in options
        ]
        yield from table(("option", "meaning"), rows)


def policies() -> Iterator[str]:
    """Yield each policy with its source and its parameters."""
    for name, entry in POLICIES.items():
        meaning = cell(entry.meaning)
        yield from (
            "",
            f"### {name}",
            "",
            f"{meaning[0].upper()}{meaning[1:]}.",
            "",
            f"Source: {entry.source}.",
        )
        rows = [
            (f"`{one.name}`", f"`{one.default}`", cell(one.values), cell(one.meaning))
            for one in entry.parameters
        ]
        yield from (
            table(("parameter", "default", "values", "meaning"), rows)
            if rows
            else ("", "It has no parameters.", "")
        )


def metrics() -> Iterator[str]:
    """Yield the table of metrics."""
    rows = [
        (
            f"`{one.name}`",
            one.unit,
            cell(one.meaning),
            f"`{one.formula}`".replace("|", "\\|"),
            one.source,
        )
        for one in METRICS
    ]
    yield from table(("name", "unit", "meaning", "formula", "source"), rows)


def config_keys() -> Iterator[str]:
    """Yield the tables of configuration keys."""
    for where, title in (
        ("", "At the top"),
        ("pool", "In `[[pool]]`"),
        ("queue", "In `[[queue]]`"),
    ):
        yield from ("", f"### {title}")
        rows = [
            (f"`{key.name}`", f"`{key.default}`", cell(key.meaning))
            for key in KEYS
            if key.table == where
        ]
        yield from table(("key", "default", "meaning"), rows)


def exit_codes() -> Iterator[str]:
    """Yield the exit codes of qbatch."""
    yield from table(("exit code", "meaning"), EXIT_CODES.items())


def pbs_exit_codes() -> Iterator[str]:
    """Yield the exit codes of the PBS commands."""
    yield from table(("exit code", "meaning"), PBS_EXIT_CODES.items())


def variables() -> Iterator[str]:
    """Yield the environment variables."""
    yield from table(
        ("variable", "meaning"), [(f"`{name}`", meaning) for name, meaning in VARIABLES.items()]
    )


def verbs() -> Iterator[str]:
    """Yield the table of verbs of the protocol."""
    rows = []
    for kind in requests.REQUESTS:
        fields = ", ".join(
            f"`{name}`" for name in kind.__struct_fields__ if name not in ("v", "id")
        )
        rows.append(
            (f"`{kind.__struct_config__.tag}`", kind.role, fields or "-", cell(str(kind.__doc__)))
        )
    yield from table(("verb", "role", "fields", "what it does"), rows)


def error_codes() -> Iterator[str]:
    """Yield the table of error codes of the protocol."""
    rows = [
        (f"`{code}`", f"{pbs} ({code_of(pbs)})", str(exit_code))
        for code, (pbs, exit_code) in errors.CODES.items()
    ]
    yield from table(
        ("code", "PBS error number (exit code of the PBS commands)", "exit code of `qbatch`"), rows
    )


def cluster_statistics() -> Iterator[str]:
    """Yield the statistics of the generated cluster next to the published ones."""
    made = generate_cluster()
    rows = [
        (each.name, each.unit, f"{each.measure(made):,.4g}", each.helios, each.philly)
        for each in MARGINALS
    ]
    yield from table(("statistic", "unit", "qbatch", "Helios", "Philly"), rows)


def table_maps() -> Iterator[str]:
    """Yield the maps of tables that come with qbatch."""
    for name in SHIPPED:
        path = ROOT / "qbatch" / "workloads" / "tables" / "maps" / f"{name}.toml"
        yield from (f"### {name}", "", "```toml", path.read_text("utf-8").rstrip(), "```", "")


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "qbatch commands": qbatch_commands,
    "pbs commands": pbs_commands,
    "policies": policies,
    "metrics": metrics,
    "config keys": config_keys,
    "exit codes": exit_codes,
    "pbs exit codes": pbs_exit_codes,
    "variables": variables,
    "verbs": verbs,
    "error codes": error_codes,
    "cluster statistics": cluster_statistics,
    "table maps": table_maps,
}


def generated(text: str) -> str:
    """Return a page with its generated parts made anew."""
    return _PART.sub(
        lambda found: found[1] + "\n".join(PARTS[found[2]]()).rstrip() + "\n\n" + found[3], text
    )


def main() -> None:
    """Write the pages that have changed."""
    for path in sorted(REFERENCE.glob("*.md")):
        before = path.read_text(encoding="utf-8")
        if (after := generated(before)) != before:
            path.write_text(after, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
