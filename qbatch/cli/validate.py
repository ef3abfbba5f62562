"""``qbatch validate``: hold a replay of a site's scheduler against what really happened."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from qbatch.cli.console import print_table, talk
from qbatch.library.progress import progress_bars
from qbatch.model.errors import UsageError

Text = str | None
LISTED = 10


def validate(
    log: Annotated[str, typer.Argument(metavar="LOG", help="The log of the site (SWF).")],
    site: Annotated[
        str, typer.Option("--site", metavar="FILE", help="Machine file of qbatch import site.")
    ],
    resources: Annotated[
        str, typer.Option(metavar="FILE", help="What each job asks for, and where it ran (CSV).")
    ],
    passes: Annotated[
        Text,
        typer.Option(
            metavar="FILE",
            help="The controller's log: the instants of its passes, and of jobs, come from it.",
        ),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="List every job that starts at another second.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON (schema qbatch.validate/1).")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Replay a log under the scheduler of its site, and compare each start with the real one."""
    from qbatch.library.sides import check_of
    from qbatch.library.validation import (
        SCHEMA,
        facts_of,
        jobs_of,
        validated,
        without_limits,
        zone_of,
    )
    from qbatch.policies.slurm import passes_of
    from qbatch.referee.reading import SiteFiles
    from qbatch.simulation.prepare import prepare
    from qbatch.workloads import read_log
    from qbatch.workloads.machines import load_machine
    from qbatch.workloads.resource_rows import read_resources
    from qbatch.workloads.site.controller_log import read_controller_log

    machine = load_machine(site)
    if machine.site is None:
        raise UsageError(
            f"--site {site}: the file has no priorities, limits or passes of a site; make it with "
            "qbatch import site"
        )
    read = read_log(log)
    rows = read_resources(resources, read)
    work = prepare(read, machine, resources=rows)
    controller = None if passes is None else read_controller_log(passes, zone_of(read))
    check = check_of(log, SiteFiles(machine, resources, site))
    facts: dict[str, Any] = {}
    span = int(work.submit[0]), int(work.submit[-1])
    with progress_bars("slurm", len(work), *span, is_quiet=quiet or as_json) as progress:
        found = validated(read, work, machine, rows, controller, progress)
        facts["site"] = facts_of(found, passes_of(machine))
        if machine.site.enforces_limits and machine.site.limits:
            free = validated(read, work, without_limits(machine), rows, controller, progress)
            facts["limits off"] = facts_of(free, passes_of(machine))
    jobs = jobs_of(found, rows)
    left_out = {name: count for name, count in work.skipped.items() if count}
    if as_json:
        record = {
            "schema": SCHEMA,
            "log": log,
            "site": site,
            "passes": passes,
            "breaches": check.breaches,
            "skipped": left_out,
            "replays": facts,
            "jobs": jobs,
        }
        typer.echo(json.dumps(record, indent=2))
        return
    names = list(facts["site"])
    print_table(
        "",
        ["", *facts],
        [[name, *(_shown(facts[each][name]) for each in facts)] for name in names],
        left=1,
    )
    for job in jobs if show_all else jobs[:LISTED]:
        start = "never" if job["start_s"] is None else f"{job['start_s']:.15g} s"
        called = f" ({job['id']} on the cluster)" if job["id"] else ""
        typer.echo(f"job {job['job']}{called}: starts {start}, really {job['real_start_s']:.15g} s")
    if len(jobs) > LISTED and not show_all:
        talk(f"{len(jobs) - LISTED} more jobs start at another second; --all lists them")
    if check.breaches:
        talk(
            "the real schedule breaks the machine of the site, so the file is wrong somewhere: "
            f"{check.first}; see {check.command}"
        )
    for name, count in left_out.items():
        talk(f"{count} jobs skipped: {name.replace('_', ' ')}")


def _shown(value: Any) -> str:
    if value is None:
        return "not known"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
