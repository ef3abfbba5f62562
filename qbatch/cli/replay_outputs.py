"""What a replay leaves: its record, job rows, a result directory, a schedule as SWF; and the refusals before any work."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from qbatch.cli.console import talk
from qbatch.distribution import install_command
from qbatch.model.errors import UsageError

if TYPE_CHECKING:
    from qbatch.model.machine import Machine
    from qbatch.model.record import Schedule, Workload
    from qbatch.planning.policy import Policy
    from qbatch.replay.prepare import Options
    from qbatch.workloads import Log

SCHEMA = "qbatch.replay/1"

Text = str | None


def check_outputs(log: Text, out: Text, jobs: Text, swf: Text, skipped: Text, policies: list[str]) -> None:
    """Refuse, before any work, outputs that could not be written after it."""
    from qbatch.model.errors import OutputError
    from qbatch.results.output import check_folder

    if swf is not None and len(policies) != 1:
        raise UsageError(f"--swf {swf}: one file holds one schedule; name one --policy ({len(policies)} are asked for)")
    if jobs is not None and not jobs.endswith((".csv", ".parquet")):
        raise UsageError(f"--jobs {jobs}: the name must end in .csv or .parquet")
    if (out is not None or (jobs or "").endswith(".parquet")) and find_spec("pyarrow") is None:
        raise UsageError(f"--out and Parquet need pyarrow: {install_command('report')}")
    written = [os.path.realpath(path) for path in (jobs, swf, skipped) if path is not None]
    named = [*written, *(os.path.realpath(path) for path in (log,) if path not in (None, "-"))]
    if len(set(named)) < len(named):
        raise UsageError("the log, --jobs, --swf and --skipped must be different files")
    if out == "" or (out is not None and any(os.path.dirname(path) == os.path.realpath(out) for path in written)):
        raise UsageError("--out DIR must name a directory of its own; --jobs, --swf and --skipped go elsewhere")
    if out is not None:
        check_folder(out)
    for path in (jobs, swf, skipped):
        folder = os.path.dirname(os.path.abspath(path)) if path else None
        if folder is not None and not os.path.isdir(folder):
            raise OutputError(f"{path}: the folder {folder} does not exist; create it first")


def document_of(
    log: dict[str, Any], work: Workload, machine: Machine, options: Options, schedules: list[Schedule], by: list[str],
    facts: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Return the record of the whole command: what the table shows, what --json prints, what --out keeps.

    ``facts``: what is told of some runs only, by name.
    """
    import msgspec

    from qbatch.distribution import __version__
    from qbatch.metrics import breakdown, measure

    results = []
    for schedule in schedules:
        rejected = int((~schedule.ran).sum())
        result: dict[str, Any] = {"policy": schedule.policy, "rejected": rejected, "metrics": measure(schedule)}
        for key in by:
            groups = [{"label": g.label, "jobs": g.jobs, "metrics": g.metrics} for g in breakdown(schedule, key)]
            result.setdefault("by", {})[key] = groups
        results.append(result)
    return {
        "schema": SCHEMA,
        "version": __version__,
        "command": ["qbatch", *sys.argv[1:]],
        "log": log,
        "machine": {
            "procs": machine.procs,
            "hosts": len(machine.hosts),
            "single_host": machine.single_host,
            "one_pool": machine.is_one_pool,
            **_hosts(machine),
        },
        "machine_digest": machine.digest,
        "options": msgspec.to_builtins(options),
        "seed": options.seed,
        "skipped": work.skipped,
        "estimates_missing": work.estimates_missing,
        "killed_at_estimate": int((work.run < work.logged_run).sum()),
        **facts,
        "results": results,
    }


def log_facts(log: Log, work: Workload) -> dict[str, Any]:
    """Return what the record says of a log."""
    return {
        "name": log.name,
        "sha256": log.sha256,
        "rows": len(log),
        "jobs": len(work),
        "notes": log.notes,
        "acknowledge": list(log.header.acknowledgements),
    }


def _hosts(machine: Machine) -> dict[str, Any]:
    """Return the hosts of a machine on which a job lives inside one of several."""
    if not machine.single_host or len(machine.hosts) == 1:
        return {}
    return {"host_names": [host.name for host in machine.hosts], "host_cpus": [host.cpus for host in machine.hosts]}


def write_outputs(document: dict[str, Any], schedules: list[Schedule], *, out: Text, jobs: Text) -> None:
    """Write job rows and the result directory, where they are asked for."""
    if jobs is not None:
        from qbatch.results.job_rows import write_job_rows
        from qbatch.results.output import whole_file

        with whole_file(jobs) as file:
            write_job_rows(file, schedules, os.path.splitext(jobs)[1])
    if out is not None:
        from qbatch.results.output import make_folder
        from qbatch.results.result import write_result

        make_folder(out)
        write_result(out, document, schedules)


def note_pieces(schedules: list[Schedule], *, has_result: bool) -> None:
    """Say of what job rows and SWF do not hold of jobs that did not run in one go."""
    count = sum(len(set(schedule.pieces[:, 0].tolist())) for schedule in schedules if schedule.pieces is not None)
    if count:
        where = "the result keeps that" if has_result else "--out DIR keeps that"
        talk(
            f"note: {count:,} jobs ran in pieces: --jobs and --swf do not say when each was suspended or resized; {where}"
        )


def _as_simulated(log: Log, work: Workload) -> Log:
    """Return the log with the submissions and estimates that the run really used (--load, --estimates, --no-kill)."""
    from dataclasses import replace

    import numpy as np

    from qbatch.model.record import MICROSECONDS
    from qbatch.workloads.unfinished import as_simulated

    columns = dict(log.columns)
    for name, used in (("submit", work.submit), ("time_requested", work.estimate)):
        original = np.asarray(log[name])
        seconds = original.astype(np.float64)
        seconds[work.log_row] = np.where(
            (name == "time_requested") & (seconds[work.log_row] <= 0) & (work.estimate == work.logged_run),
            seconds[work.log_row],
            used / MICROSECONDS,
        )
        if not np.array_equal(seconds, original):
            columns[name] = seconds
    return replace(log, columns=columns, header=as_simulated(log.header))


def _preempted(log: Log) -> Log:
    """Return the log with a header that says ``Preemption: TS``: totals of jobs that were suspended, without the pieces."""
    from dataclasses import replace

    import msgspec

    from qbatch.workloads.header import keyword_of

    lines = [line for line in log.header.lines if keyword_of(line) != "preemption"]
    return replace(log, header=msgspec.structs.replace(log.header, lines=(*lines, "; Preemption: TS"), preemption="TS"))


def write_swf(log: Log, schedule: Schedule, path: str) -> None:
    """Write the schedule of a log's jobs as SWF."""
    import numpy as np

    from qbatch.model.record import MICROSECONDS
    from qbatch.results.output import whole_file
    from qbatch.workloads import write_schedule
    from qbatch.workloads.unfinished import unfinished_of

    work = schedule.workload
    rows = np.flatnonzero(schedule.ran)
    status = np.asarray(log["status"])[work.log_row[rows]].astype(np.int64)
    was_killed = work.run[rows] < work.logged_run[rows]
    status = np.where(was_killed, 5, np.where(status == 5, 1, status))
    found = unfinished_of(log)
    if found is not None:
        status = np.where((found.runs | found.waits)[work.log_row[rows]] & ~was_killed, 1, status)
    simulated, in_pieces = _as_simulated(log, work), []
    if schedule.pieces is not None:
        simulated = _preempted(simulated)
        in_pieces = ["run times are from the first start to the end: jobs were suspended or resized"]
    with whole_file(path) as file:
        write_schedule(
            file,
            simulated,
            work.log_row[rows],
            wait_s=(schedule.start - work.submit)[rows] / MICROSECONDS,
            run_s=(schedule.end - schedule.start)[rows] / MICROSECONDS,
            status=status,
            procs=work.procs[rows],
            notes=[
                f"schedule simulated by qbatch, policy {schedule.policy}, on {work.procs_total} processors",
                *in_pieces,
            ],
        )


def distinct(policies: list[Policy]) -> list[Policy]:
    """Return policies as they are, each under a name of its own, or raise ``UsageError``."""
    from qbatch.planning.policy import name_of

    names = [name_of(policy) for policy in policies]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--policy {name}: it is asked for twice; name each policy once")
    return policies
