"""What all imports of ``qbatch import`` share: the check of their outputs, and the summary on
stderr."""

from __future__ import annotations

import os
from typing import Any

from qbatch.cli.console import talk
from qbatch.model.errors import OutputError, UsageError


def check_output(
    out: str, files: list[str], key: str | None = None, machine_file: str | None = None
) -> None:
    """Refuse, before any work, an output that cannot be written or that would overwrite an
    input."""
    real = [
        os.path.realpath(path)
        for path in (out, key, machine_file, *files)
        if path is not None and path != "-"
    ]
    if len(real) != len(set(real)):
        raise UsageError(
            "the accounting files, --key, --machine-file and -o must be different files, each "
            "named once"
        )
    folder = os.path.dirname(os.path.abspath(out))
    if any(
        os.path.isdir(path) and os.path.realpath(path) == os.path.realpath(folder) for path in files
    ):
        raise UsageError(
            f"-o {out}: is among the accounting files; name a place outside of {folder}"
        )
    if out != "-" and not os.path.isdir(folder):
        raise OutputError(f"{out}: the folder {folder} does not exist; create it first")


def print_summary(document: dict[str, Any], out: str, resources: str | None) -> None:
    """Print on stderr a summary of the import and the records that could not be used.

    ``resources``: the path of the side file, if one was written.
    """
    from msgspec import convert

    from qbatch.workloads.left_out import NOT_TOLD, LeftOut, still_left_out
    from qbatch.workloads.resource_rows import kinds_in

    jobs, time, machine = document["jobs"], document["time"], document["machine"]
    name = "standard output" if out == "-" else out
    talk(
        f"{name}: {jobs['ran']:,} jobs that ran, {jobs['never_ran']:,} cancelled before they ran; "
        "from "
        f"{document['records']:,} records on {document['lines']:,} lines of "
        f"{len(document['files']):,} files"
    )
    if len(jobs["clusters"]) > 1:
        each = ", ".join(
            f"{name or 'not named'} ({count:,} jobs)" for name, count in jobs["clusters"].items()
        )
        talk(
            f"{len(jobs['clusters'])} clusters: {each}; the log is of one machine with all of them: "
            "--cluster NAME takes one"
        )
    how = (
        "the most in use at once; give the true size with --machine-procs"
        if machine["is_inferred"]
        else "as given"
    )
    hosts = f"; {machine['hosts_seen']:,} hosts seen" if machine["hosts_seen"] else ""
    talk(f"machine: {machine['procs']:,} processors ({how}){hosts}")
    if machine["wider_jobs"]:
        talk(
            f"{machine['wider_jobs']:,} jobs request more processors than that: a replay skips them"
        )
    where = (
        ""
        if time["zone_from"] == "--timezone"
        else f" ({time['zone_from']}; --timezone names another)"
    )
    talk(
        f"local times: {time['zone']}{where}; {time['gaps']:,} in a gap, {time['folds']:,} in a "
        "fold of daylight saving"
    )
    if jobs["eligible_later_than_submitted"] and document["format"] != "table":
        talk(
            f"{jobs['eligible_later_than_submitted']:,} jobs were eligible later than submitted "
            "(held, dependent, timed): "
            "--submit eligible counts their waits from then"
        )
    rows = [
        [kind, f"{each['count']:,}", each["reason"], each["first"]]
        for kind, part in (
            ("UNUSABLE", "unusable"),
            ("adjusted", "adjusted"),
            ("left out", "ignored"),
        )
        for each in document[part]
    ]
    kinds = {} if resources is None else kinds_in(resources)
    left_out = still_left_out(convert(document["left_out"], list[LeftOut]), kinds)
    for kind in left_out:
        count = "?" if kind.jobs is None else f"{kind.jobs:,}"
        why = f": {NOT_TOLD}" if kind.jobs is None else f" ({kind.names})" if kind.names else ""
        rows.append(["not in log", count, f"{kind.what}{why}", ""])
    if rows:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for kind, count, reason, first in rows:
            place = f"first: {first}" if first else ""
            talk(f"  {kind:<10}  {count:>{widths[1]}}  {reason:<{widths[2]}}  {place}".rstrip())
    if left_out:
        talk(
            "the header of the log lists what is not in it, as does every table and comparison of "
            "it"
        )
    unknown = document["unknown_fields"]
    if unknown:
        most = sorted(unknown.items(), key=lambda item: -item[1])[:5]
        listed = ", ".join(f"{name} ({count:,})" for name, count in most)
        talk(
            f"  {len(unknown):,} unknown fields, ignored: "
            f"{listed}{', ...' if len(unknown) > 5 else ''}"
        )
