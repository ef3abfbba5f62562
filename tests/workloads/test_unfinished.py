"""A log that was written while jobs ran and waited: replayed as it was, and verified without false
breaches."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from qbatch.model.machine import one_host
from qbatch.model.record import Schedule
from qbatch.referee.verify import judge, read_finished
from qbatch.simulation import prepare
from qbatch.workloads import findings, read_log
from qbatch.workloads.header import parse_header
from qbatch.workloads.unfinished import as_simulated, hosts_note, unfinished_note, unfinished_of
from tests.harness import run_named, size, workload_of
from tests.oracle.workloads import random_jobs

SECOND = 1_000_000


def written_at(schedule: Schedule, now: int, path: Path, change: int = 0) -> list[str]:
    """Write the log of a schedule as it stood at an instant (``change``: a start that is put off);
    return each job's standing."""
    work, lines, standing = schedule.workload, io.StringIO(), []
    for row in range(len(work)):
        submit, start, end = int(work.submit[row]), int(schedule.start[row]), int(schedule.end[row])
        if change and row == change:
            start, end = start + SECOND, end + SECOND
        if submit > now:
            break
        standing.append("ended" if end <= now else "running" if start <= now else "waiting")
        wait, run, status = {
            "ended": ((start - submit) / SECOND, (end - start) / SECOND, 1),
            "running": ((start - submit) / SECOND, (now - start) / SECOND, 2),
            "waiting": (-1, -1, -1),
        }[standing[-1]]
        procs, estimate = int(work.procs[row]), int(work.estimate[row]) / SECOND
        lines.write(
            f"{row + 1} {submit / SECOND} {wait} {run} {procs} -1 -1 {procs} {estimate} -1 "
            f"{status}{' -1' * 7}\n"
        )
    note = unfinished_note(f"{now / SECOND}", standing.count("running"), standing.count("waiting"))
    path.write_text(
        f"; Version: 2.2\n; MaxProcs: {work.procs_total}\n; Note: {note}\n{lines.getvalue()}"
    )
    return standing


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_what_had_started_starts_again_at_the_same_instants_and_keeps_its_policy(
    policy: str, tmp_path: Path
) -> None:
    path = tmp_path / "log.swf"
    seen: dict[str, int] = {}
    for seed in range(size(60, 250)):
        rng = random.Random(seed)
        procs = rng.choice((4, 7, 16))
        real = run_named(workload_of(random_jobs(rng, rng.randint(3, 25), procs), procs), policy)
        now = rng.randint(int(real.workload.submit[0]), int(real.end.max())) // SECOND * SECOND
        standing = written_at(real, now, path)
        work = prepare(read_log(str(path)), one_host(procs))
        assert len(work) == len(standing), seed
        assert work.counted.all(), seed
        again = run_named(work, policy)
        for place, row in enumerate(work.number - 1):
            seen[standing[row]] = seen.get(standing[row], 0) + 1
            if standing[row] == "waiting":
                assert again.start[place] > now or work.submit[place] == now, seed
            else:
                assert again.start[place] == real.start[row], (seed, row)
        ((done, known),) = read_finished(str(path))
        verdict = judge(done, policy, known)
        assert verdict.is_kept, (seed, verdict.breaches[0])
    assert min(seen.values()) > size(48, 200)


def test_a_false_start_before_the_log_was_written_is_still_found(tmp_path: Path) -> None:
    path, caught = tmp_path / "log.swf", 0
    for seed in range(60):
        rng = random.Random(seed)
        real = run_named(workload_of(random_jobs(rng, 20, 8), 8), "easy")
        now = int(real.end.max()) * 2 // 3 // SECOND * SECOND
        late = [row for row in range(len(real.start)) if real.start[row] + SECOND < now]
        if not late:
            continue
        written_at(real, now, path, change=late[-1])
        ((done, known),) = read_finished(str(path))
        caught += not judge(done, "easy", known).is_kept
    assert caught > 30


def test_what_a_log_says_of_them_is_no_fault_and_is_not_said_of_its_simulated_schedule(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.swf"
    note, hosts = unfinished_note("100", 1, 1), hosts_note([4, 4])
    rows = (
        "1 0 0 100 4 -1 -1 4 500 -1 2 -1 -1 -1 -1 -1 -1 -1\n2 1 -1 -1 -1 -1 -1 4 500 -1 -1 -1 "
        "-1 -1 -1 -1 -1 -1\n"
    )
    path.write_text(f"; MaxProcs: 8\n; Note: {note}\n; Note: {hosts}\n{rows}")
    log = read_log(str(path))
    found = unfinished_of(log)
    assert found is not None
    assert (found.second, found.runs.tolist(), found.waits.tolist()) == (
        100.0,
        [True, False],
        [False, True],
    )
    codes = {finding.code: finding.severity for finding in findings(log)}
    assert (codes["running"], codes["waiting"]) == ("note", "note")
    assert not {"never_ran", "part_status"} & codes.keys()
    assert as_simulated(log.header).notes == ()
    assert parse_header(as_simulated(log.header).lines).notes == ()
    ((done, known),) = read_finished(str(path))
    assert (len(done), known.is_one_pool, done.workload.skipped) == (2, False, {})


def test_the_same_rows_without_the_note_are_parts_and_jobs_that_never_ran(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    rows = (
        "1 0 0 100 4 -1 -1 4 500 -1 2 -1 -1 -1 -1 -1 -1 -1\n2 1 -1 -1 -1 -1 -1 4 500 -1 -1 -1 "
        "-1 -1 -1 -1 -1 -1\n"
    )
    path.write_text(f"; MaxProcs: 8\n{rows}")
    log = read_log(str(path))
    assert unfinished_of(log) is None
    work = prepare(log, one_host(8))
    assert (work.run.tolist(), work.skipped) == ([100 * SECOND], {"negative_run": 1})
