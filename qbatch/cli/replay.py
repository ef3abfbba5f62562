"""``qbatch replay``: what policies would have done with a workload log."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qbatch.cli.console import progress_bars, talk
from qbatch.cli.replay_outputs import (
    check_outputs,
    distinct,
    document_of,
    log_facts,
    note_pieces,
    write_outputs,
    write_swf,
)
from qbatch.cli.run_table import print_run
from qbatch.model.errors import UsageError, suggestion

if TYPE_CHECKING:
    from qbatch.model.machine import Machine
    from qbatch.model.record import Schedule, Workload
    from qbatch.planning.policy import Policy
    from qbatch.replay.prepare import Options
    from qbatch.replay.sources import Source
    from qbatch.workloads import Log
    from qbatch.workloads.feedback import Feedback

Text = str | None
DEFAULT_POLICIES = ["fcfs", "easy", "conservative"]


def replay(
    log: Annotated[
        Text, typer.Argument(metavar="LOG", help="SWF or five-column log, also .gz or .xz; - is stdin.", show_default=False)
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", "-p", help="NAME[:key=value,...]; repeat to compare (see policies).")
    ] = None,
    procs: Annotated[int | None, typer.Option(min=1, max=10**9, help="Processors (else the log's header).")] = None,
    estimates: Annotated[str, typer.Option(help="log, perfect, f:N, exact, rounded or tsafrir.", metavar="MODEL")] = "log",
    seed: Annotated[int, typer.Option(min=0, help="Seed of drawn estimates.")] = 0,
    no_kill: Annotated[bool, typer.Option("--no-kill", help="Lift estimates to run times; end nobody early.")] = False,
    since: Annotated[
        Text, typer.Option("--from", metavar="T", help="First submission: log seconds or ISO time.")
    ] = None,
    before: Annotated[Text, typer.Option("--to", metavar="T", help="Submissions before this instant only.")] = None,
    first: Annotated[int | None, typer.Option(min=1, help="At most so many jobs.")] = None,
    warmup: Annotated[str, typer.Option(metavar="T", help="Run the first T (12h, 7d, to a date) uncounted.")] = "0",
    load: Annotated[float, typer.Option(help="Divide the gaps between arrivals by this.")] = 1.0,
    closed: Annotated[bool, typer.Option("--closed", help="Users wait for their jobs before they submit the next.")] = False,
    source: Annotated[Text, typer.Option(metavar="SOURCE", help="Jobs of a model that reacts, such as closed:N=16.")] = None,
    machine: Annotated[Text, typer.Option(metavar="FILE", help="Machine file (TOML), or origin2000.")] = None,
    out: Annotated[Text, typer.Option(metavar="DIR", help="Write a result: result.json and job rows.")] = None,
    jobs: Annotated[Text, typer.Option(metavar="FILE", help="Write job rows: .csv or .parquet.")] = None,
    swf: Annotated[Text, typer.Option(metavar="FILE", help="Write the schedule as SWF (one policy).")] = None,
    deadlines: Annotated[Text, typer.Option(metavar="FILE", help="Deadlines by job number (CSV; see transform).")] = None,
    skipped: Annotated[Text, typer.Option(metavar="FILE", help="List skipped jobs as CSV: line, job, reason.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of the table.")] = False,
    by: Annotated[list[str] | None, typer.Option(metavar="KEY", help="Break down: month, user, size, ...")] = None,
    explain: Annotated[Text, typer.Option(metavar="JOB", help="Tell the story of one job.")] = None,
    step: Annotated[bool, typer.Option("--step", help="Draw the schedule pass by pass (small logs).")] = False,
    audit: Annotated[bool, typer.Option("--audit", help="Check the invariants of each schedule.")] = False,
    driver: Annotated[str, typer.Option(help="auto, compiled or engine: who runs the loop.")] = "auto",
    lenient: Annotated[bool, typer.Option("--lenient", help="Skip rows that cannot be read.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")] = False,
) -> None:
    """Replay a workload log under one or more policies and compare them."""
    asked = dict(locals())
    from qbatch.metrics import BREAKDOWNS
    from qbatch.policies import load_policy
    from qbatch.replay import DRIVERS, Options, prepare
    from qbatch.workloads import read_log

    _check_choice("--driver", driver, DRIVERS)
    for key in by or []:
        _check_choice("--by", key, tuple(BREAKDOWNS))
    if source is not None:
        _replay_source(source, asked)
        return
    if log is None:
        raise UsageError("a LOG is missing; name a workload log (- is stdin), or a --source such as closed:N=16")
    check_outputs(log, out, jobs, swf, skipped, policy or DEFAULT_POLICIES)
    _check_load(load)
    chosen = distinct([load_policy(text) for text in policy or DEFAULT_POLICIES])
    read = read_log(log, lenient=lenient)
    hosts = _machine(read, procs, machine)
    options = Options(
        estimates=estimates, seed=seed, kill=not no_kill, since=since, before=before, first=first,
        load=load, **_warmup(warmup),
    )  # fmt: skip
    _write_skipped(read, hosts, skipped)
    work = prepare(read, hosts, options, _deadlines(deadlines, read))
    if not quiet:
        _notes(read, work, hosts, chosen, options)
    if explain is not None or step:
        _check_text_only({
            "--out": out, "--jobs": jobs, "--swf": swf, "--json": as_json, "--by": by, "--audit": audit, "--closed": closed,
        })  # fmt: skip
        _tell(work, hosts, chosen, explain, step)
        return
    _replay_log(read, work, hosts, options, chosen, asked)


def _replay_source(source: str, asked: dict[str, Any]) -> None:
    """Replay what a source makes; ``asked``: the values of all options."""
    from qbatch.cli.replay_source import replay_source

    names = {
        "log": "LOG", "procs": "--procs", "since": "--from", "before": "--to", "first": "--first", "deadlines": "--deadlines",
        "skipped": "--skipped", "swf": "--swf", "explain": "--explain", "step": "--step", "closed": "--closed",
        "no_kill": "--no-kill", "lenient": "--lenient",
    }  # fmt: skip
    others = {
        **{option: asked[name] for name, option in names.items()}, "--load": asked["load"] != 1.0,
        "--warmup": asked["warmup"] != "0", "--estimates": asked["estimates"] != "log",
    }  # fmt: skip
    replay_source(
        source, asked["policy"] or ["taskqueues"], others, machine=asked["machine"], seed=asked["seed"], out=asked["out"],
        jobs=asked["jobs"], as_json=asked["as_json"], by=asked["by"] or [], is_audited=asked["audit"],
        driver=asked["driver"], is_quiet=asked["quiet"],
    )  # fmt: skip


def _replay_log(
    read: Log, work: Workload, hosts: Machine, options: Options, chosen: list[Policy], asked: dict[str, Any]
) -> None:
    """Run the policies and give out what they made; ``asked``: the values of all options."""
    quiet, driver, audit, load = asked["quiet"], asked["driver"], asked["audit"], asked["load"]
    out, jobs, swf = asked["out"], asked["jobs"], asked["swf"]
    follows = _feedback(read, work, is_quiet=quiet) if asked["closed"] else None
    if follows is None:
        _announce_compiler(chosen, hosts, driver, quiet)
    schedules = [
        run_one(work, hosts, each, _source(read, work, hosts, follows, load), driver=driver, is_audited=audit, is_quiet=quiet)
        for each in chosen
    ]
    facts = {**_facts(read, work), **({} if follows is None else {"closed": _closed_facts(work, follows)})}
    document = document_of(log_facts(read, work), work, hosts, options, schedules, asked["by"] or [], facts)
    write_outputs(document, schedules, out=out, jobs=jobs)
    if swf is not None:
        write_swf(read, schedules[0], swf)
    if (jobs is not None or swf is not None) and not quiet:
        note_pieces(schedules, has_result=out is not None)
    if asked["as_json"]:
        typer.echo(json.dumps(document, indent=2, allow_nan=False))
    else:
        print_run(document)
    if audit and not quiet:
        talk("audit: capacity, submissions, starts, ends and promises hold under every policy asked for")


def _deadlines(path: Text, log: Log) -> Any:
    if path is None:
        return None
    from qbatch.workloads.transform import read_deadlines

    return read_deadlines(path, log)


def _check_choice(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{option} {value!r}: use one of {', '.join(known)}{suggestion(value, known)}")


def _check_text_only(others: dict[str, Any]) -> None:
    """Refuse what makes no sense beside --explain and --step."""
    names = ", ".join(name for name, value in others.items() if value)
    if names:
        raise UsageError(f"--explain and --step print text only; leave out {names}")


def _check_load(load: float) -> None:
    if not 0.000001 <= load <= 1_000_000:
        raise UsageError(f"--load {load:g}: use a factor from 0.000001 to 1000000")


def _warmup(text: str) -> dict[str, Any]:
    """Return the options that ``3600``, ``90m``, ``12h``, ``7d``, ``1w`` or an ISO time ask for."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
    number, unit = (text[:-1], units[text[-1]]) if text and text[-1] in units else (text, 1)
    try:
        value = float(number) * unit
    except ValueError:
        with suppress(ValueError):
            datetime.fromisoformat(text)
            return {"counted_from": text}
        value = -1.0
    if not 0 <= value < 1e12:
        raise UsageError(
            f"--warmup {text!r}: use seconds, a number with s, m, h, d or w (such as 7d), or a date such as 1999-12-01"
        )
    return {"warmup": value}


def _machine(log: Log, procs: int | None, name: Text) -> Machine:
    from qbatch.model.machine import one_host
    from qbatch.replay.prepare import choose_procs
    from qbatch.workloads.machines import load_machine

    if name is None:
        return one_host(choose_procs(log, procs))
    if procs is not None:
        raise UsageError("--procs and --machine both say how large the machine is; leave one out")
    return load_machine(name)


def _notes(log: Log, work: Workload, machine: Machine, policies: list[Policy], options: Options) -> None:
    from qbatch.planning.policy import note_of_classes
    from qbatch.results.run_words import missing_estimates_of

    for note in log.notes:
        talk(f"note: {note}")
    for reason, count in work.skipped.items():
        talk(f"note: {count} jobs skipped: {reason.replace('_', ' ')} (--skipped FILE lists them)")
    if work.estimates_missing and options.estimates == "log":
        talk(f"note: {missing_estimates_of(work.estimates_missing, len(work))}")
    for note in _unfinished_notes(log, work, machine):
        talk(f"note: {note}")
    killed = int((work.run < work.logged_run).sum())
    if killed:
        talk(f"note: {killed} jobs run longer than their estimate and are ended there (--no-kill lifts it)")
    if not work.counted.any():
        talk("note: --warmup is longer than the log: no job is counted")
    heedless = note_of_classes(policies, machine)
    if heedless:
        talk(f"note: {heedless}")


def _unfinished_notes(log: Log, work: Workload, machine: Machine) -> list[str]:
    """Return what is to be said of a log that was written while jobs ran and waited, and of one whose machine had hosts."""
    from qbatch.workloads.unfinished import is_on_hosts

    notes = []
    if counts := _unfinished(log, work):
        notes.append(
            f"when the log was written (second {counts['second']:g}), {counts['running']:,} of these jobs ran and "
            f"{counts['waiting']:,} waited: they take part and are counted, with the requested time as run time; their "
            "slowdowns, and waits that end after it, are projections"
        )
    if machine.is_one_pool and is_on_hosts(log.header):
        notes.append(
            "the log's jobs lived on several hosts; here all processors are one pool (--machine FILE describes hosts)"
        )
    return notes


def _unfinished(log: Log, work: Workload) -> dict[str, Any]:
    """Return when the log was written and how many of the jobs replayed ran and waited then; nothing if none did."""
    from qbatch.workloads.unfinished import unfinished_of

    found = unfinished_of(log)
    if found is None:
        return {}
    running, waiting = (int(mask[work.log_row].sum()) for mask in (found.runs, found.waits))
    return {"second": found.second, "running": running, "waiting": waiting} if running or waiting else {}


def _announce_compiler(policies: list[Policy], machine: Machine, driver: str, is_quiet: bool) -> None:
    from qbatch.planning.kernels.jit import is_warm
    from qbatch.planning.policy import PlanLoop, QuantumLoop, loop_of

    names: dict[type, str] = {PlanLoop: "run_plan", QuantumLoop: "run_quanta"}
    loops = [loop_of(policy, machine) for policy in policies if driver != "engine"]
    wanted = {names.get(type(loop), "run_passes") for loop in loops if loop is not None}
    if not is_quiet and not all(is_warm(name) for name in wanted):
        talk("compiling the kernels: once, about fifteen seconds; later runs load them from the cache")


def run_one(
    work: Workload, machine: Machine, policy: Policy, source: Source | None, *, driver: str, is_audited: bool, is_quiet: bool
) -> Schedule:
    """Run one policy, with progress; ``source``: where the jobs come from, if not as the workload has them."""
    from qbatch.planning.policy import name_of
    from qbatch.replay import run

    ends = int(work.submit[0]), int(work.submit[-1])
    with progress_bars(name_of(policy), len(work), *ends, is_quiet=is_quiet) as progress:
        jobs = work if source is None else source
        return run(jobs, machine, policy, driver=driver, is_audited=is_audited, progress=progress)


def _feedback(log: Log, work: Workload, *, is_quiet: bool) -> Feedback:
    from qbatch.workloads.feedback import feedback_of

    found = feedback_of(log)
    if not is_quiet:
        facts = _closed_facts(work, found)
        how = "by its field 17" if facts["is_told"] else "derived: it has no field 17"
        lacking = "" if facts["jobs"] or facts["is_told"] else "; that takes users and waits, which a generated log lacks"
        talk(f"note: {facts['jobs']:,} of {len(work):,} jobs of the log are submitted after another has ended ({how}{lacking})")
    return found


def _closed_facts(work: Workload, follows: Feedback) -> dict[str, Any]:
    return {"jobs": int((follows.predecessor[work.log_row] >= 0).sum()), "is_told": follows.is_told}


def _source(log: Log, work: Workload, machine: Machine, follows: Feedback | None, load: float) -> Source | None:
    if follows is None:
        return None
    from qbatch.replay.feedback import feedback_source

    return feedback_source(log, work, machine, follows, load)


def _tell(work: Workload, machine: Machine, policies: list[Policy], job: Text, step: bool) -> None:
    from qbatch.replay.steps import draw_steps
    from qbatch.replay.story import tell_story

    for policy in policies:
        lines = draw_steps(work, machine, policy) if step else tell_story(work, machine, policy, str(job))
        for line in lines:
            typer.echo(line)


def _facts(log: Log, work: Workload) -> dict[str, Any]:
    """Return what is told of some logs only."""
    return {
        **({"deadlines": count} if (count := int((work.deadline >= 0).sum())) else {}),
        **({"unfinished": unfinished} if (unfinished := _unfinished(log, work)) else {}),
    }


def _write_skipped(log: Log, machine: Machine, path: Text) -> None:
    """List the jobs that cannot run; before the replay, since a log of which no job can run is when the list is needed most."""
    from qbatch.replay.prepare import reasons_to_skip
    from qbatch.results.output import whole_file
    from qbatch.results.skipped_jobs import write_skipped

    if path is None:
        return
    with whole_file(path) as file:
        write_skipped(file, log, reasons_to_skip(log, machine))
    unlisted = log.bad_rows - len(log.bad_lines)
    if unlisted:
        talk(f"note: {path}: {unlisted:,} more unreadable rows are not listed")
