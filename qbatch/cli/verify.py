"""``qbatch verify``: run the referee on a schedule, and list or write the conformance workloads."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from qbatch.cli.console import print_table, talk
from qbatch.model.errors import QbatchError, UsageError, suggestion

if TYPE_CHECKING:
    from qbatch.referee.reading import Judged
    from qbatch.referee.verify import Judgement

LISTED_MAX = 1000
"""Breaches of one schedule that ``--all`` lists."""

Text = str | None


def verify(
    schedule: Annotated[
        Text,
        typer.Argument(
            metavar="SCHEDULE",
            help="SWF with waits (- is stdin), job rows, or DIR or DIR:POLICY of a result.",
        ),
    ] = None,
    policy: Annotated[
        Text,
        typer.Option("--policy", "-p", help="Policy to check against [the one named in the rows]."),
    ] = None,
    procs: Annotated[
        int | None,
        typer.Option(min=1, max=10**9, help="Processors [those of the header or the result]."),
    ] = None,
    machine: Annotated[
        Text,
        typer.Option(metavar="FILE", help="Check hosts: machine file; goes with --resources."),
    ] = None,
    resources: Annotated[
        Text,
        typer.Option(
            metavar="FILE", help="What each job asks for, and where it ran (CSV, see the docs)."
        ),
    ] = None,
    outages: Annotated[
        Text,
        typer.Option(metavar="FILE", help="When hosts were closed (CSV: host,start,end)."),
    ] = None,
    no_kill: Annotated[
        bool, typer.Option("--no-kill", help="Allow jobs to run beyond their estimates.")
    ] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help=f"List every breach (up to {LISTED_MAX}).")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON (schema qbatch.verify/1).")
    ] = False,
    list_conformance: Annotated[
        bool,
        typer.Option("--list-conformance", help="List the conformance workloads and their traps."),
    ] = False,
    write_conformance: Annotated[
        Text,
        typer.Option(
            "--write-conformance",
            metavar="DIR",
            help="Write the conformance workloads, as text and SWF.",
        ),
    ] = None,
) -> None:
    """Check a finished schedule of any simulator against the guarantees of a policy; exit code 1
    for a breach."""
    if list_conformance or write_conformance is not None:
        if schedule is not None:
            raise UsageError(
                "the conformance workloads need no SCHEDULE; verify it in a separate command"
            )
        _conformance(write_conformance, as_json)
        return
    if schedule is None:
        raise UsageError(
            "name a SCHEDULE to verify (SWF with waits, job rows, or the directory of a result)"
        )
    from qbatch.policies import load_policy
    from qbatch.referee.reading import site_files
    from qbatch.referee.verify import SCHEMA, judge, read_finished, verdict_document

    if policy is not None:
        load_policy(policy)
    site = site_files(machine, resources, procs, outages)
    chosen = _chosen(read_finished(schedule, procs, site), policy, schedule)
    verdicts = [
        judge(done, claimed, known, is_killing=not no_kill) for (done, known), claimed in chosen
    ]
    most = LISTED_MAX if show_all else 1
    if as_json:
        results = [verdict_document(verdict, most) for verdict in verdicts]
        typer.echo(json.dumps({"schema": SCHEMA, "results": results}, indent=2))
    else:
        for verdict in verdicts:
            _print(verdict, most)
    if not all(verdict.is_kept for verdict in verdicts):
        raise typer.Exit(QbatchError.exit_code)


def _chosen(schedules: list[Judged], policy: Text, path: str) -> list[tuple[Judged, Text]]:
    """Return the schedules to check, each with the policy to check it against."""
    from qbatch.policies.registry import name_among

    if policy is None:
        return [(each, _known(each[0].policy)) for each in schedules]
    if len(schedules) == 1:
        return [(schedules[0], policy)]
    name = name_among(policy, [each[0].policy for each in schedules])
    named = [each for each in schedules if each[0].policy == name]
    if not named:
        known = [each[0].policy or "unnamed" for each in schedules]
        raise UsageError(
            f"--policy {policy}: {path} holds {len(schedules)} schedules, none of that name"
            f"{suggestion(policy, known)} (it has {', '.join(known)})"
        )
    return [(each, policy) for each in named]


def _known(name: str) -> Text:
    """Return the name of a policy in a file if it is a built-in one: a name in a file must not load
    code."""
    from qbatch.policies import POLICIES, load_policy

    if not name:
        return None
    try:
        if name.partition(":")[0] in POLICIES:
            load_policy(name)
            return name
    except UsageError:
        pass
    talk(
        f"note: the rows name the policy {name!r}, which is not built in; name its policy with "
        "--policy"
    )
    return None


def _print(verdict: Judgement, most: int) -> None:
    from qbatch.referee.verify import CODES, seconds
    from qbatch.workloads.resource_rows import ids_in_words

    work = verdict.schedule.workload
    what = (
        f"{work.name}: {len(work):,} jobs on {work.procs_total:,} processors, policy "
        f"{verdict.policy or 'not named'}"
    )
    for note in verdict.notes:
        talk(f"note: {note}")
    for reason, count in work.skipped.items():
        talk(
            f"note: {count:,} {'job' if count == 1 else 'jobs'} left out: "
            f"{reason.replace('_', ' ')}"
        )
    if verdict.is_kept and not verdict.unchecked:
        typer.echo(f"kept: {what}")
    elif verdict.is_kept:
        typer.echo(
            f"kept as far as could be checked: {what} (not checked: "
            f"{'; '.join(verdict.not_checked)})"
        )
    else:
        typer.echo(f"breach: {what}")
        for breach in verdict.breaches[:most]:
            typer.echo(f"  {breach.code} at {seconds(breach.instant)}: {breach.text}")
            if named := ids_in_words(breach.jobs, verdict.ids):
                typer.echo(f"    ({named})")
        if most == 1:
            typer.echo(f"    ({CODES[verdict.breaches[0].code]})")
        total = len(verdict.breaches)
        if total > most:
            counts = Counter(breach.code for breach in verdict.breaches)
            kinds = ", ".join(f"{count:,} {code}" for code, count in counts.items())
            way = "--all lists them" if most == 1 else f"the first {most:,} are listed"
            typer.echo(f"  {total:,} breaches in all ({kinds}); {way}")
    for text in verdict.checked:
        typer.echo(f"  checked      {text}")
    promises, jobs = verdict.taken_back
    if promises:
        what = (
            f"{promises:,} {'promise' if promises == 1 else 'promises'} to {jobs:,} "
            f"{'job' if jobs == 1 else 'jobs'}"
        )
        typer.echo(f"  taken back   {what}, by the policy itself: no breach")
    for text in verdict.unchecked:
        typer.echo(f"  not checked  {text}")


def _conformance(directory: Text, as_json: bool) -> None:
    from qbatch.referee.conformance import conformance_workloads, write_conformance

    workloads = conformance_workloads()
    if directory is not None:
        count = write_conformance(directory)
        talk(
            f"{count} conformance workloads written to {directory}; README.txt there explains how "
            "to use them"
        )
    elif as_json:
        entries = [
            {
                "name": each.name,
                "trap": each.trap,
                "about": each.about,
                "procs": each.procs,
                "expected": {
                    name: [run and run.start for run in runs]
                    for name, runs in each.expected.items()
                },
                "wrong": [
                    {
                        "policy": wrong.policy,
                        "code": wrong.code,
                        "starts": [run and run.start for run in wrong.runs],
                    }
                    for wrong in each.wrong
                ],
            }
            for each in workloads
        ]
        typer.echo(json.dumps({"schema": "qbatch.conformance/1", "workloads": entries}, indent=2))
    else:
        codes = [", ".join(dict.fromkeys(wrong.code for wrong in each.wrong)) for each in workloads]
        rows = [[each.name, each.trap, code] for each, code in zip(workloads, codes, strict=True)]
        print_table(
            "Conformance workloads",
            ["workload", "trap", "breaches of the wrong schedules"],
            rows,
            left=3,
        )
