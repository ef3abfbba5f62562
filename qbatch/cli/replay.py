"""``qbatch replay``: run a workload log under one or more policies in virtual time."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from qbatch.cli.console import check_choice, refuse_given, talk
from qbatch.cli.replay_outputs import (
    Shown,
    check_outputs,
    check_rejections,
    note_pieces,
    print_record,
    write_outputs,
    write_swf,
)
from qbatch.library.progress import progress_bars
from qbatch.model.errors import UsageError

if TYPE_CHECKING:
    from qbatch.library.experiment import Experiment
    from qbatch.model.machine import Machine
    from qbatch.model.record import Schedule
    from qbatch.planning.policy import Policy
    from qbatch.workloads import Log
    from qbatch.workloads.resource_rows import ResourceRows

Text = str | None
DEFAULT_POLICIES = ["fcfs", "easy", "conservative"]


def replay(
    log: Annotated[
        Text,
        typer.Argument(
            metavar="LOG",
            help="SWF or five-column log, also .gz or .xz; - is stdin.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", "-p", help="NAME[:key=value,...]; repeat to compare (see policies)."
        ),
    ] = None,
    procs: Annotated[
        int | None, typer.Option(min=1, max=10**9, help="Processors [those of the log's header].")
    ] = None,
    estimates: Annotated[
        str, typer.Option(help="log, perfect, f:N, exact, rounded or tsafrir.", metavar="MODEL")
    ] = "log",
    seed: Annotated[int, typer.Option(min=0, help="Seed of drawn estimates.")] = 0,
    no_kill: Annotated[
        bool, typer.Option("--no-kill", help="Raise estimates to run times; end no job early.")
    ] = False,
    since: Annotated[
        Text,
        typer.Option("--from", metavar="T", help="First submission (log seconds or ISO time)."),
    ] = None,
    before: Annotated[
        Text, typer.Option("--to", metavar="T", help="Only submissions before this instant.")
    ] = None,
    first: Annotated[int | None, typer.Option(min=1, help="Replay at most this many jobs.")] = None,
    warmup: Annotated[
        str, typer.Option(metavar="T", help="Do not count the first T (12h, 7d, or up to a date).")
    ] = "0",
    load: Annotated[
        float, typer.Option(help="Divide the gaps between arrivals by this factor.")
    ] = 1.0,
    closed: Annotated[
        bool,
        typer.Option("--closed", help="Users wait for their jobs before they submit the next."),
    ] = False,
    source: Annotated[
        Text, typer.Option(metavar="SOURCE", help="Model with feedback, such as closed:N=16.")
    ] = None,
    machine: Annotated[
        Text, typer.Option(metavar="FILE", help="Machine file (TOML), or origin2000.")
    ] = None,
    out: Annotated[
        Text,
        typer.Option(metavar="DIR", help="Write a result directory: result.json and job rows."),
    ] = None,
    jobs: Annotated[
        Text, typer.Option(metavar="FILE", help="Write job rows: .csv or .parquet.")
    ] = None,
    swf: Annotated[
        Text, typer.Option(metavar="FILE", help="Write the schedule as SWF (one policy).")
    ] = None,
    deadlines: Annotated[
        Text,
        typer.Option(metavar="FILE", help="Read deadlines by job number (CSV; see transform)."),
    ] = None,
    resources: Annotated[
        Text,
        typer.Option(metavar="FILE", help="Read nodes, memory, GPUs and partitions by job (CSV)."),
    ] = None,
    outages: Annotated[
        Text,
        typer.Option(
            metavar="FILE", help="Read when hosts are closed to new jobs (CSV: host,start,end)."
        ),
    ] = None,
    skipped: Annotated[
        Text, typer.Option(metavar="FILE", help="List skipped jobs as CSV: line, job, reason.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of the table.")
    ] = False,
    by: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="Break down by month, user, size, ...")
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Show every metric, in seconds; every pass of --step.")
    ] = False,
    explain: Annotated[
        Text, typer.Option(metavar="JOB", help="Print what happened to one job, step by step.")
    ] = None,
    step: Annotated[
        bool, typer.Option("--step", help="Draw the schedule pass by pass, one key per pass.")
    ] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Check the invariants of each schedule.")
    ] = False,
    driver: Annotated[
        str, typer.Option(help="Loop that runs the jobs: auto, compiled or engine.")
    ] = "auto",
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Skip rows that cannot be read.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show no progress and no notes.")
    ] = False,
) -> None:
    """Replay a workload log under one or more policies and compare them."""
    from qbatch.cli.stepping import step_through
    from qbatch.library.experiment import check_load, distinct, experiment_of, machine_of, warmup_of
    from qbatch.metrics import BREAKDOWNS
    from qbatch.policies import load_policy
    from qbatch.simulation import DRIVERS, Options
    from qbatch.workloads import read_log

    check_choice("--driver", driver, DRIVERS)
    for key in by or []:
        check_choice("--by", key, BREAKDOWNS)
    shown = Shown(
        out=out,
        jobs=jobs,
        by=tuple(by or ()),
        is_json=as_json,
        is_audited=audit,
        driver=driver,
        is_quiet=quiet,
        is_whole=show_all,
    )
    if source is not None:
        refuse_given(
            f"--source {source}: a source generates its jobs itself",
            {
                "LOG": log,
                "--procs": procs,
                "--from": since,
                "--to": before,
                "--first": first,
                "--deadlines": deadlines,
                "--resources": resources,
                "--outages": outages,
                "--skipped": skipped,
                "--swf": swf,
                "--explain": explain,
                "--step": step,
                "--closed": closed,
                "--no-kill": no_kill,
                "--lenient": lenient,
                "--load": load != 1.0,
                "--warmup": warmup != "0",
                "--estimates": estimates != "log",
            },
        )
        _replay_source(source, policy or ["taskqueues"], machine, seed, shown)
        return
    if log is None:
        raise UsageError(
            "a LOG is missing; name a workload log (- is stdin), or a --source such as closed:N=16"
        )
    check_outputs(log, out, jobs, swf, skipped, policy or DEFAULT_POLICIES)
    check_load(load)
    chosen = distinct([load_policy(text) for text in policy or DEFAULT_POLICIES])
    read = read_log(log, lenient=lenient)
    hosts = machine_of(read, procs, machine)
    given = Options(
        load=load,
        estimates=estimates,
        seed=seed,
        kill=not no_kill,
        since=since,
        before=before,
        first=first,
        **warmup_of(warmup),
    )
    latest = None
    if deadlines is not None:
        from qbatch.workloads.transform import read_deadlines

        latest = read_deadlines(deadlines, read)
    requests = None
    if resources is not None:
        from qbatch.workloads.resource_rows import read_resources

        requests = read_resources(resources, read)
    if skipped is not None:
        _write_skipped(read, hosts, requests, skipped)
    experiment = experiment_of(read, hosts, given, latest, requests, outages)
    if not quiet:
        for note in experiment.notes(chosen):
            talk(f"note: {note}")
    if explain is not None or step:
        refuse_given(
            "--explain and --step print text only",
            {
                "--out": out,
                "--jobs": jobs,
                "--swf": swf,
                "--json": as_json,
                "--by": by,
                "--audit": audit,
                "--closed": closed,
            },
        )
        refuse_given("--explain and --step know no closed hosts", {"--outages": outages})
    if step:
        step_through(experiment.work, experiment.machine, chosen, at_once=show_all)
    elif explain is not None:
        from qbatch.simulation.story import row_of, tell_story
        from qbatch.workloads.resource_rows import ids_in_words

        number = int(experiment.work.number[row_of(experiment.work, explain)])
        if named := ids_in_words([number], requests.ids if requests is not None else {}):
            typer.echo(named)
        for each in chosen:
            for line in tell_story(experiment.work, experiment.machine, each, explain):
                typer.echo(line)
    else:
        _replay_log(experiment, chosen, shown, swf, is_closed=closed)


def _replay_log(
    experiment: Experiment, chosen: list[Policy], shown: Shown, swf: Text, *, is_closed: bool
) -> None:
    """Run the policies and write their results."""
    from qbatch.planning.kernels.jit import when_loaded
    from qbatch.planning.policy import name_of
    from qbatch.simulation.drivers import is_compiling

    if is_closed:
        experiment = experiment.closed()
        if not shown.is_quiet:
            talk(f"note: {experiment.note_of_users()}")
    elif not shown.is_quiet and shown.driver != "engine" and experiment.outages is None:

        def announce() -> None:
            if any(is_compiling(experiment.work, experiment.machine, policy) for policy in chosen):
                talk(
                    "compiling the kernels once, which takes about fifteen seconds; later runs "
                    "load them from the cache"
                )

        when_loaded(announce)
    work = experiment.work
    ends = int(work.submit[0]), int(work.submit[-1])
    schedules = []
    for policy in chosen:
        with progress_bars(name_of(policy), len(work), *ends, is_quiet=shown.is_quiet) as progress:
            schedules.append(
                experiment.schedule(
                    policy, driver=shown.driver, is_audited=shown.is_audited, progress=progress
                )
            )
    document = experiment.document(schedules, shown.by, ["qbatch", *sys.argv[1:]])
    write_outputs(document, schedules, out=shown.out, jobs=shown.jobs)
    if swf is not None:
        write_swf(experiment.log, schedules[0], swf)
    if (shown.jobs is not None or swf is not None) and not shown.is_quiet:
        note_pieces(schedules, has_result=shown.out is not None)
    print_record(document, shown)
    check_rejections(schedules, is_quiet=shown.is_quiet)


def _replay_source(text: str, policies: list[str], machine: Text, seed: int, shown: Shown) -> None:
    """Run policies on the jobs of a model that reacts to the schedule, and print the record."""
    from qbatch.library.experiment import distinct, document_of
    from qbatch.planning.policy import name_of
    from qbatch.policies import load_policy
    from qbatch.simulation import run
    from qbatch.simulation.network import NetworkSource
    from qbatch.simulation.prepare import Options
    from qbatch.workloads.machines import load_machine
    from qbatch.workloads.network import read_network

    check_outputs(None, shown.out, shown.jobs, None, None, policies)
    network = read_network(text)
    hosts = network.machine() if machine is None else load_machine(machine)
    chosen = distinct([load_policy(each) for each in policies])
    if shown.driver == "compiled":
        raise UsageError("--driver compiled: only the engine can run a source; leave it out")
    schedules: list[Schedule] = []
    for each in chosen:
        with progress_bars(
            name_of(each), 0, 0, network.horizon, is_quiet=shown.is_quiet
        ) as progress:
            live = NetworkSource(network, seed)
            schedules.append(run(live, hosts, each, is_audited=shown.is_audited, progress=progress))
    work = schedules[0].workload
    log = {
        "name": network.name,
        "sha256": None,
        "rows": len(work),
        "jobs": len(work),
        "notes": list[str](),
    }
    facts = {"source": network.name, "options": {}}  # none of them applies to a source
    command = ["qbatch", *sys.argv[1:]]
    document = document_of(
        log, work, hosts, Options(seed=seed, kill=False), schedules, shown.by, facts, command
    )
    write_outputs(document, schedules, out=shown.out, jobs=shown.jobs)
    print_record(document, shown)
    check_rejections(schedules, is_quiet=shown.is_quiet)


def _write_skipped(log: Log, machine: Machine, resources: ResourceRows | None, path: str) -> None:
    """List the jobs that cannot run, before the replay: the list is needed most for a log of which
    no job can run."""
    from qbatch.results.output import whole_file
    from qbatch.results.skipped_jobs import write_skipped
    from qbatch.simulation.prepare import reasons_to_skip

    with whole_file(path) as file:
        write_skipped(file, log, reasons_to_skip(log, machine, resources))
    unlisted = log.bad_rows - len(log.bad_lines)
    if unlisted:
        talk(f"note: {path}: {unlisted:,} more unreadable rows are not listed")
