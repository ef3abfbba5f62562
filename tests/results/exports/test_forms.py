"""Each form of export against the rows it was made of, by naive checkers."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.metrics.per_job import job_times
from qbatch.model.errors import UsageError
from qbatch.model.record import LogClock, Schedule, finished_run
from qbatch.results.exports import FORMS, Exportable, ExportedBar
from qbatch.results.exports.chrome import lanes
from qbatch.results.job_rows import read_job_rows, write_job_rows
from qbatch.workloads import read_log
from tests.reports.samples import (
    KTH_CLOCK,
    in_pieces,
    random_workload,
    result_of,
    scheduled,
    tried,
    workload,
)


def exported(
    form: str, *rows: Schedule, procs: int = 16, clock: LogClock | None = None, **more: Any
) -> bytes:
    out = io.BytesIO()
    FORMS[form].write(
        out,
        Exportable(
            result_of(*rows, name="sample", procs_total=procs, clock=clock or LogClock()), **more
        ),
    )
    return out.getvalue()


def rows_of(jobs: list[tuple[int, int, int, int]]) -> Schedule:
    """Return a schedule of (submit, wait, run, procs)."""
    jobs = sorted(jobs)
    submit, wait, run, procs = (np.array(column, np.int64) for column in zip(*jobs, strict=True))
    return finished_run(
        "p",
        number=np.arange(1, len(jobs) + 1),
        submit=submit,
        start=submit + wait,
        end=submit + wait + run,
        procs=procs,
        estimate=run + 1,
        run=run,
    )


SMALL = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 8), st.integers(1, 9)),
    min_size=1,
    max_size=25,
)


def most_busy(rows: Schedule) -> int:
    instants = range(int(rows.start.min()), int(rows.end.max()) + 1)
    return max(
        int(rows.workload.procs[(rows.start <= at) & (at < rows.end)].sum()) for at in instants
    )


# ------------------------------------------------------------------------------------------------
# tables


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("policy", ["easy", "conservative", "fcfs"])
def test_tables_are_what_a_replay_writes(suffix: str, policy: str, tmp_path: Path) -> None:
    schedules = [
        scheduled(random_workload(200, seed=3), policy),
        scheduled(random_workload(99, seed=4), "easy", "other"),
    ]
    out = io.BytesIO()
    write_job_rows(out, schedules, f".{suffix}")
    path = tmp_path / f"rows.{suffix}"
    path.write_bytes(out.getvalue())
    assert exported(suffix, *read_job_rows(path)) == out.getvalue()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_of_rows_that_know_little(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{suffix}"
    path.write_bytes(exported(suffix, rows_of([(0, 1, 0, 2), (3, 500_000, 7, 1)])))
    [back] = read_job_rows(path)
    assert back.kind.tolist() == back.workload.user.tolist() == back.promise.tolist() == [-1, -1]
    assert back.start.tolist() == [1, 500_003]


# ------------------------------------------------------------------------------------------------
# SWF


def test_the_log_holds_the_waits_of_the_schedule(tmp_path: Path) -> None:
    rows = scheduled(random_workload(120, seed=2), "conservative")
    path = tmp_path / "log.swf"
    path.write_bytes(exported("swf", rows, clock=KTH_CLOCK))
    log = read_log(str(path))
    by_job = {job: row for row, job in enumerate(rows.workload.number.tolist())}
    order = [by_job[job] for job in log["job"].tolist()]
    for name, column in (
        ("submit", rows.workload.submit),
        ("wait", job_times(rows).wait),
        ("run", rows.workload.run),
        ("time_requested", rows.workload.estimate),
    ):
        assert (log[name].astype(np.int64) * 1_000_000).tolist() == column[order].tolist(), name
    assert log["user"].tolist() == rows.workload.user[order].tolist()
    assert (log.header.unix_start_time, log.header.time_zone_string) == (
        KTH_CLOCK.unix_start,
        KTH_CLOCK.zone,
    )
    assert log.header.max_procs == 16
    assert log.header.max_jobs == len(log) == 120
    assert set(log["status"].tolist()) <= {1, -1}


@pytest.mark.parametrize("form", ["swf", "batsim"])
def test_one_schedule_in_one_file(form: str) -> None:
    rows = scheduled(random_workload(5))
    with pytest.raises(UsageError, match="name one --policy"):
        exported(form, rows, rows)


# ------------------------------------------------------------------------------------------------
# Batsim


@given(jobs=SMALL)
def test_no_processor_has_two_jobs_at_once(jobs: list[tuple[int, int, int, int]]) -> None:
    rows = rows_of(jobs)
    total = most_busy(rows)
    table = list(
        csv.DictReader(io.StringIO(exported("batsim", rows, procs=max(total, 1)).decode()))
    )
    assert [row["job_id"] for row in table] == [
        str(rows.workload.number[row]) for row in np.lexsort((rows.start, rows.end))
    ]
    held: dict[tuple[int, int], str] = {}
    for row in table:
        ends = [part.partition("-") for part in row["allocated_resources"].split()]
        processors = [
            one
            for low, dash, high in ends
            for one in range(int(low), int(high if dash else low) + 1)
        ]
        assert len(set(processors)) == len(processors) == int(row["requested_number_of_resources"])
        start, end = (round(float(row[name]) * 1e6) for name in ("starting_time", "finish_time"))
        assert round(float(row["execution_time"]) * 1e6) == end - start
        for at in range(start, end):
            for one in processors:
                assert one < total
                assert held.setdefault((at, one), row["job_id"]) == row["job_id"]


# ------------------------------------------------------------------------------------------------
# Chrome


def test_a_trace_names_counts_and_nests_as_the_rows_say() -> None:
    schedules = [scheduled(random_workload(150, seed=8), policy) for policy in ("easy", "fcfs")]
    each = schedules
    document = json.loads(exported("chrome", *each))
    assert document["otherData"]["processors"] == 16
    names = {
        e["pid"]: e["args"]["name"] for e in document["traceEvents"] if e["name"] == "process_name"
    }
    assert sorted(names.values()) == ["easy: 16 processors", "fcfs: 16 processors"]
    for pid, rows in zip(sorted(names), each, strict=True):
        events = [event for event in document["traceEvents"] if event["pid"] == pid]
        found = intervals(events)
        expected = zip(
            rows.workload.number.tolist(), rows.start.tolist(), rows.end.tolist(), strict=True
        )
        assert sorted(found) == sorted(expected)
        for counter, unit, level in (
            (
                "queue",
                "jobs",
                lambda at, rows=rows: int(((rows.workload.submit <= at) & (at < rows.start)).sum()),
            ),
            (
                "busy",
                "processors",
                lambda at, rows=rows: int(
                    rows.workload.procs[(rows.start <= at) & (at < rows.end)].sum()
                ),
            ),
        ):
            steps = [
                (event["ts"], event["args"][unit])
                for event in events
                if event["ph"] == "C" and event["name"] == counter
            ]
            assert [value for _, value in steps] == [level(at) for at, _ in steps]
            assert steps[-1][1] == 0
            assert max(value for _, value in steps) == max(
                level(at) for at in rows.start.tolist() + rows.workload.submit.tolist()
            )


def intervals(events: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    """Return (job, begin, end) of the events, and fail where a lane holds two jobs at once (naive,
    event by event)."""
    found: list[tuple[int, int, int]] = []
    by_lane: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["ph"] in "BE":
            by_lane[event["pid"], event["tid"]].append(event)
    for lane in by_lane.values():
        assert [event["ph"] for event in lane] == ["B", "E"] * (len(lane) // 2)
        assert [event["ts"] for event in lane] == sorted(event["ts"] for event in lane)
        for begin, end in zip(lane[::2], lane[1::2], strict=True):
            assert begin["name"] == end["name"]
            found.append((begin["args"]["job"], begin["ts"], end["ts"]))
    return found


def test_a_job_that_was_suspended_shows_as_a_gap_and_hosts_as_processes() -> None:
    rows = rows_of([(0, 5, 20, 4), (1, 9, 5, 2)])
    facts = [(0, "n1", 5, 10, 4), (0, "n1", 15, 25, 4), (1, "n1", 10, 15, 1), (1, "n2", 10, 15, 1)]
    bars = [ExportedBar(*each) for each in facts]
    document = json.loads(exported("chrome", rows, bars={"p": bars}))
    events = document["traceEvents"]
    hosts = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
    assert set(hosts) == {"p: 16 processors", "p: host n1", "p: host n2"}
    on_n1 = [event for event in events if event["pid"] == hosts["p: host n1"]]
    assert sorted(intervals(on_n1)) == [(1, 5, 10), (1, 15, 25), (2, 10, 15)]
    busy = [
        (event["ts"], event["args"]["processors"]) for event in events if event["name"] == "busy"
    ]
    assert busy == [(5, 4), (10, 2), (15, 4), (25, 0)]


def test_what_the_rows_say_of_suspension_is_reported() -> None:
    rows = scheduled(workload([0], [1], [100], [100]))
    longer = replace(rows, end=rows.end + 3_000_000)
    [begin] = [
        event
        for event in json.loads(exported("chrome", longer))["traceEvents"]
        if event["ph"] == "B"
    ]
    assert begin["args"]["suspended_s"] == 3.0


@given(spans=st.lists(st.tuples(st.integers(0, 15), st.integers(0, 6)), max_size=30))
def test_lanes_never_overlap_and_are_no_more_than_needed(spans: list[tuple[int, int]]) -> None:
    bars = [
        ExportedBar(row, "h", begin, begin + length, 1) for row, (begin, length) in enumerate(spans)
    ]
    found = lanes(bars)
    cells: set[tuple[int, int]] = set()
    for bar, lane in zip(bars, found, strict=True):
        # In half instants: a bar of no length covers its instant alone, another from there to just
        # before its end.
        mine = {
            (lane, half)
            for half in (
                range(2 * bar.begin, 2 * bar.end) if bar.end > bar.begin else [2 * bar.begin]
            )
        }
        assert not mine & cells
        cells |= mine
    if bars:
        together = [
            sum((b.begin <= at < b.end) or (b.begin == b.end == at) for b in bars)
            for at in range(25)
        ]
        assert max(found) + 1 == max(together)


# ------------------------------------------------------------------------------------------------
# jobs in pieces


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_trace_has_a_bar_for_each_piece_and_counts_what_was_busy(seed: int) -> None:
    schedule = in_pieces(seed, unit=1)
    rows = schedule
    events = json.loads(exported("chrome", rows, procs=99))["traceEvents"]
    bars: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    open_ones: dict[tuple[int, int], dict[str, Any]] = {}
    for event in events:
        if event["ph"] == "B":
            open_ones[event["pid"], event["tid"]] = event
        elif event["ph"] == "E":
            begun = open_ones.pop((event["pid"], event["tid"]))
            bars[begun["args"]["job"]].append(
                (begun["ts"], event["ts"], begun["args"]["processors_here"])
            )
    work, lines = schedule.workload, [] if schedule.pieces is None else schedule.pieces.tolist()
    for row in range(len(work)):
        mine = [(line[1], line[2], line[3]) for line in lines if line[0] == row]
        whole = [(int(schedule.start[row]), int(schedule.end[row]), int(work.procs[row]))]
        assert sorted(bars[int(work.number[row])]) == sorted(mine or whole)
    busy = [
        (event["ts"], event["args"]["processors"]) for event in events if event["name"] == "busy"
    ]
    for at, level in busy:
        assert level == sum(
            procs for spans in bars.values() for begin, end, procs in spans if begin <= at < end
        )
    queue = [(event["ts"], event["args"]["jobs"]) for event in events if event["name"] == "queue"]
    if queue:
        assert min(level for _, level in queue) == queue[-1][1] == 0


def test_a_trace_shows_for_how_long_a_job_was_off_the_machine() -> None:
    events = json.loads(exported("chrome", tried("immediate:inner=easy")))["traceEvents"]
    facts = {event["args"]["job"]: event["args"] for event in events if event["ph"] == "B"}
    assert {job: each.get("suspended_s") for job, each in facts.items()} == {
        1: 60,
        2: 60,
        3: None,
        4: None,
        5: 5070 - 760,
        6: None,
    }
    assert (facts[1]["pieces"], facts[1]["wait_s"], "pieces" in facts[3]) == (2, 60, False)


@pytest.mark.parametrize("form", FORMS)
def test_a_form_says_what_it_loses_of_jobs_in_pieces(form: str) -> None:
    def loss(rows: Schedule) -> list[str]:
        return FORMS[form].losses(Exportable(result_of(rows, procs_total=12)))

    losses = loss(tried("equispatial"))
    if form == "chrome":
        assert losses == []
    else:
        [line] = losses
        assert line.startswith("5 jobs with several intervals: kept is first start")
        assert "lost is when each was suspended or resized" in line
    assert loss(scheduled(random_workload(20))) == []


def test_bars_from_start_to_end_in_swf_and_batsim(tmp_path: Path) -> None:
    schedule = tried("immediate:inner=easy")
    (tmp_path / "a.swf").write_bytes(exported("swf", schedule, procs=12))
    log = read_log(str(tmp_path / "a.swf"))
    assert (log["run"] == (schedule.end - schedule.start) // 10**6).all()
    assert (log["wait"] == (schedule.start - schedule.workload.submit) // 10**6).all()
    assert "; Preemption: TS" in (tmp_path / "a.swf").read_text()
    table = list(csv.DictReader(io.StringIO(exported("batsim", schedule, procs=12).decode())))
    for row in table:
        job = int(row["job_id"]) - 1
        assert float(row["execution_time"]) * 10**6 == schedule.end[job] - schedule.start[job]
        held = [part.partition("-") for part in row["allocated_resources"].split()]
        count = sum(int(high or low) - int(low) + 1 for low, _, high in held)
        assert count == schedule.workload.procs[job]


def test_the_log_names_queues_as_the_one_that_was_replayed(tmp_path: Path) -> None:
    rows = scheduled(random_workload(5))
    names = {1: "short jobs", 4: "long\n; MaxProcs: 7"}
    with (tmp_path / "a.swf").open("wb") as file:
        FORMS["swf"].write(file, Exportable(result_of(rows, queue_names=names)))
    header = read_log(str(tmp_path / "a.swf")).header
    assert header.queue_names() == {1: "short jobs", 4: "long ; MaxProcs: 7"}
    assert header.max_procs == 16
