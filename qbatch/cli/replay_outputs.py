"""The outputs of a replay: a printed record, job rows, a result directory, SWF; and the checks of
their names before it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import typer

from qbatch.cli.console import talk
from qbatch.cli.run_table import print_run
from qbatch.distribution import install_command
from qbatch.model.errors import UsageError

if TYPE_CHECKING:
    from qbatch.model.record import Schedule, Workload
    from qbatch.workloads import Log

Text = str | None


@dataclass(frozen=True, slots=True)
class Shown:
    """The options that a replay of a log and one of a source share: what to write, what to print,
    how to run."""

    out: Text
    jobs: Text
    by: tuple[str, ...]
    is_json: bool
    is_audited: bool
    driver: str
    is_quiet: bool
    is_whole: bool


def check_outputs(
    log: Text, out: Text, jobs: Text, swf: Text, skipped: Text, policies: list[str]
) -> None:
    """Refuse, before any work, outputs that cannot be written."""
    from qbatch.model.errors import OutputError
    from qbatch.results.output import check_folder

    if swf is not None and len(policies) != 1:
        raise UsageError(
            f"--swf {swf}: one file holds one schedule; name one --policy ({len(policies)} are "
            "asked for)"
        )
    if jobs is not None and not jobs.endswith((".csv", ".parquet")):
        raise UsageError(f"--jobs {jobs}: the name must end in .csv or .parquet")
    if (out is not None or (jobs or "").endswith(".parquet")) and find_spec("pyarrow") is None:
        raise UsageError(f"--out and Parquet need pyarrow: {install_command('report')}")
    written = [os.path.realpath(path) for path in (jobs, swf, skipped) if path is not None]
    named = [*written, *(os.path.realpath(path) for path in (log,) if path not in (None, "-"))]
    if len(set(named)) < len(named):
        raise UsageError("the log, --jobs, --swf and --skipped must be different files")
    if out == "" or (
        out is not None and any(os.path.dirname(path) == os.path.realpath(out) for path in written)
    ):
        raise UsageError(
            "--out DIR must name a directory of its own; --jobs, --swf and --skipped go elsewhere"
        )
    if out is not None:
        check_folder(out)
    for path in (jobs, swf, skipped):
        folder = os.path.dirname(os.path.abspath(path)) if path else None
        if folder is not None and not os.path.isdir(folder):
            raise OutputError(f"{path}: the folder {folder} does not exist; create it first")


def write_outputs(
    document: dict[str, Any], schedules: list[Schedule], *, out: Text, jobs: Text
) -> None:
    """Write job rows and the result directory, if they are asked for."""
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


def print_record(document: dict[str, Any], shown: Shown) -> None:
    """Print the record of a replay, as a table or as JSON, and the result of the audit, if there
    was one."""
    if shown.is_json:
        typer.echo(json.dumps(document, indent=2, allow_nan=False))
    else:
        print_run(document, is_whole=shown.is_whole)
    if shown.is_audited and not shown.is_quiet:
        talk("audit: capacity, submissions, starts, ends and promises hold under every policy")


def check_rejections(schedules: list[Schedule], *, is_quiet: bool) -> None:
    """Print a line for each policy that rejected half of the jobs or more: why, and what to do.

    Raises:
        typer.Exit: with 1, if no job ran under one of them; its line is printed even with
        ``--quiet``.
    """
    all_rejected = False
    for schedule in schedules:
        count = len(schedule.rejected)
        if 0 < len(schedule) == count:
            all_rejected = True
            talk(f"qbatch: {_rejections_text(schedule)}")
        elif 0 < len(schedule) <= 2 * count and not is_quiet:
            talk(f"note: {_rejections_text(schedule)}")
    if all_rejected:
        raise typer.Exit(1)


def _rejections_text(schedule: Schedule) -> str:
    """Return how many jobs a policy rejected, the most common reason with its first job, and the
    way out."""
    from collections import Counter

    rejected = schedule.rejected
    code, count = Counter(each.code for each in rejected).most_common(1)[0]
    first = next(each for each in rejected if each.code == code)
    how_many = "all" if len(rejected) == len(schedule) else f"{len(rejected):,} of"
    how_often = "each" if count == len(rejected) else f"{count:,} of them"
    return (
        f"{schedule.policy} rejected {how_many} {len(schedule):,} jobs, {how_often} as {code} "
        f"(job {schedule.workload.number[first.row]}: {first.text}); change the machine file, the "
        "deadlines or the policy; "
        "--jobs FILE.csv lists each rejected job with its reason"
    )


def note_pieces(schedules: list[Schedule], *, has_result: bool) -> None:
    """Print what job rows and SWF do not hold of jobs with several execution intervals."""
    count = sum(
        len(set(schedule.pieces[:, 0].tolist()))
        for schedule in schedules
        if schedule.pieces is not None
    )
    if count:
        where = "the result holds them" if has_result else "--out DIR writes them"
        talk(
            f"note: {count:,} jobs were suspended or resized: --jobs and --swf do not hold their "
            f"execution intervals; {where}"
        )


def _as_simulated(log: Log, work: Workload) -> Log:
    """Return the log with the submissions and estimates that the run used (--load, --estimates,
    --no-kill)."""
    from dataclasses import replace

    import numpy as np

    from qbatch.model.record import MICROSECONDS
    from qbatch.workloads.unfinished import as_simulated

    columns = dict(log.columns)
    for name, used in (("submit", work.submit), ("time_requested", work.estimate)):
        original = np.asarray(log[name])
        seconds = original.astype(np.float64)
        has_none = (
            (name == "time_requested")
            & (seconds[work.log_row] <= 0)
            & (work.estimate == work.logged_run)
        )
        seconds[work.log_row] = np.where(has_none, seconds[work.log_row], used / MICROSECONDS)
        if not np.array_equal(seconds, original):
            columns[name] = seconds
    return replace(log, columns=columns, header=as_simulated(log.header))


def write_swf(log: Log, schedule: Schedule, path: str) -> None:
    """Write the schedule of a log's jobs as SWF."""
    from dataclasses import replace

    import msgspec
    import numpy as np

    from qbatch.model.record import MICROSECONDS
    from qbatch.results.output import whole_file
    from qbatch.workloads import write_schedule
    from qbatch.workloads.header import keyword_of
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
        # Totals of suspended jobs, without their execution intervals.
        lines = [line for line in simulated.header.lines if keyword_of(line) != "preemption"]
        header = msgspec.structs.replace(
            simulated.header, lines=(*lines, "; Preemption: TS"), preemption="TS"
        )
        simulated = replace(simulated, header=header)
        in_pieces = [
            "run times are from the first start to the end: jobs were suspended or resized"
        ]
    notes = [
        f"schedule simulated by qbatch, policy {schedule.policy}, on {work.procs_total} processors",
        *in_pieces,
    ]
    with whole_file(path) as file:
        write_schedule(
            file,
            simulated,
            work.log_row[rows],
            wait_s=(schedule.start - work.submit)[rows] / MICROSECONDS,
            run_s=(schedule.end - schedule.start)[rows] / MICROSECONDS,
            status=status,
            procs=work.procs[rows],
            notes=notes,
        )
