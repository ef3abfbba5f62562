"""``qbatch trace catalogue`` and ``qbatch trace get``: list the public logs, and copy one to the
user's cache."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qbatch.cli.console import check_choice, print_table, progress_bar, talk
from qbatch.model.errors import UsageError

if TYPE_CHECKING:
    from qbatch.workloads.catalogue import Cache, Catalogue, Entry

SCHEMA = "qbatch.trace-catalogue/1"


def catalogue(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show only this log.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the public logs: jobs, machine, span, terms of use, and citation."""
    from qbatch.workloads.catalogue import load_catalogue

    known, cache = load_catalogue(), _cache()
    entries = known.log if name is None else (known.find(name)[0],)
    if as_json:
        logs = [_record(known, entry, cache) for entry in entries]
        document = {
            "schema": SCHEMA,
            "archive": known.archive,
            "acknowledge": known.acknowledge,
            "citation": known.citation,
        }
        typer.echo(json.dumps({**document, "logs": logs}, indent=2))
    elif name is not None:
        record = _record(known, entries[0], cache)
        pairs = [(key, value) for key, value in record.items() if key != "versions"]
        for version in record["versions"]:
            pairs += [
                ("", ""),
                *(
                    (key, value)
                    for key, value in version.items()
                    if key != "pinned_sha256" or value
                ),
            ]
        for key, value in [*pairs, ("", ""), ("archive", known.acknowledge), ("", known.citation)]:
            if value is None:
                text = "no" if key == "cached" else "none known" if key in _OPEN else "unknown"
            else:
                text = f"{value:,}" if isinstance(value, int) else value
            typer.echo(f"{key:<14} {text}".rstrip())
    else:
        rows = []
        for entry in known.log:
            first = entry.version[0]
            jobs, procs = (
                "" if count is None else f"{count:,}" for count in (first.jobs, entry.processors)
            )
            span = f"{entry.since or ''} {entry.until or ''}".strip()
            kinds = ", ".join(each.kind for each in entry.version)
            here = "yes" if any(cache.path(each).is_file() for each in entry.version) else ""
            rows.append(
                [
                    entry.name,
                    entry.system or "",
                    kinds,
                    jobs,
                    procs,
                    span,
                    "known" if first.sha256 else "",
                    here,
                ]
            )
        print_table(
            "",
            ["name", "machine", "versions", "jobs", "processors", "span", "checksum", "cached"],
            rows,
            left=3,
        )
        talk(
            f"from {known.archive}; empty fields are unknown; qbatch trace catalogue NAME shows "
            "all of one log"
        )


def get(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Log or file of the catalogue, such as KTH-SP2.")
    ],
    version: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="cleaned or unfiltered [what the archive recommends]."),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="DIR", help="Put a copy there and print its path.")
    ] = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            metavar="URL", envvar="QBATCH_MIRROR", help="Address instead of the archive's."
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(min=0.001, max=86_400, help="Give up after this many seconds without a byte."),
    ] = 30.0,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show no progress and no notes.")
    ] = False,
) -> None:
    """Fetch a public log, or find it in the cache, and print its path."""
    from qbatch.results.output import make_folder, whole_file
    from qbatch.workloads.catalogue import KINDS, fetch, load_catalogue

    if version is not None:
        check_choice("--version", version, KINDS)
    known = load_catalogue()
    entry, kind = known.find(name)
    if kind is not None and version not in (None, kind):
        raise UsageError(
            f"{name} is the {kind} version; leave out --version {version}, or name the log: "
            f"{entry.name}"
        )
    chosen = entry.chosen(version or kind)

    def say(text: str) -> None:
        if not quiet:
            talk(text)

    with progress_bar(
        chosen.file, chosen.bytes, "DownloadColumn", "TimeRemainingColumn", is_quiet=quiet
    ) as update:

        def progress(total: int, more: int) -> None:
            if update is not None:
                update(advance=more, total=total or chosen.bytes)

        path = fetch(
            known,
            entry,
            chosen,
            _cache(),
            mirror=mirror or None,
            timeout_s=timeout,
            progress=progress,
            say=say,
        )
    if entry.licence is not None:
        say(f"note: {entry.name}: {entry.licence}")
    if to is not None:
        stored, path = path, Path(to) / path.name
        make_folder(path)
        with whole_file(path) as file, open(stored, "rb") as content:
            shutil.copyfileobj(content, file)
    typer.echo(str(path))


def _cache() -> Cache:
    from qbatch.wire.paths import cache_directory
    from qbatch.workloads.catalogue import Cache

    return Cache(cache_directory() / "traces")


def _record(known: Catalogue, entry: Entry, cache: Cache) -> dict[str, Any]:
    """Return an entry for JSON: every field, null if it is unknown."""
    versions = [
        {
            "kind": each.kind,
            "file": each.file,
            "url": f"{known.archive}/{entry.folder}/{each.file}",
            "jobs": each.jobs,
            "bytes": each.bytes,
            "sha256": each.sha256,
            "pinned_sha256": None if each.sha256 else cache.checksum(each),
            "cached": str(cache.path(each)) if cache.path(each).is_file() else None,
        }
        for each in entry.version
    ]
    return {
        "name": entry.name,
        "system": entry.system,
        "installation": entry.installation,
        "processors": entry.processors,
        "since": entry.since,
        "until": entry.until,
        "acknowledge": entry.acknowledge,
        "citation": entry.citation,
        "licence": entry.licence,
        "note": entry.note,
        "source": entry.source,
        "versions": versions,
    }


_OPEN = ("licence", "citation", "note")
"""Fields that may be empty because there is nothing to report."""
