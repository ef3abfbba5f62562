"""A schedule in the trace event format of Chrome, for Perfetto (ui.perfetto.dev).

Source: "Trace Event Format" (the Chromium project).  A process is a host, or a policy's whole
machine if hosts are unknown; a thread is a lane, which holds one job at a time.  ``B`` and ``E``
begin and end each execution interval of a job; ``C`` are counters of waiting jobs and busy
processors; ``M`` names things.  Times are microseconds of the log's own clock.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO

import numpy as np

from qbatch.metrics.per_job import job_times
from qbatch.model.record import KINDS, MICROSECONDS, Int64Array, Schedule
from qbatch.results.exports.exportable import Exportable, ExportedBar

_EVENTS_AT_ONCE = 4096
_LEAST = {"started": 0, "suspended_s": 1, "pieces": 1, "user": 0, "group": 0, "queue": 0}
"""Least values of facts of a job; a lower value is left out."""


def write_chrome(out: BinaryIO, source: Exportable) -> None:
    """Write the trace of all policies of the result, one after another in the list of processes."""
    result = source.result
    facts = {
        "source": result.name,
        "policies": list(result.policies),
        "processors": result.procs_total,
        "unix_start_s": result.clock.unix_start,
        "time_zone": result.clock.zone,
    }
    out.write(b'{"displayTimeUnit":"ms","otherData":' + _json(facts) + b',"traceEvents":[\n')
    events, separator = _events(source), b""
    while block := list(islice(events, _EVENTS_AT_ONCE)):
        out.write(separator + b",\n".join(map(_json, block)))
        separator = b",\n"
    out.write(b"\n]}\n")


def lanes(bars: Sequence[ExportedBar]) -> list[int]:
    """Return a lane for each bar, the lowest free one: no two bars of a lane share an instant.

    A bar is half-open, so one may begin where another ends; a bar of no length occupies its
    instant.
    """
    free: list[int] = []
    busy: list[tuple[int, bool, int]] = []
    count = 0
    found = [0] * len(bars)
    for place in sorted(
        range(len(bars)), key=lambda place: (bars[place].begin, bars[place].end, place)
    ):
        begin, end = bars[place].begin, bars[place].end
        while busy and (busy[0][0] < begin or (busy[0][0] == begin and not busy[0][1])):
            heapq.heappush(free, heapq.heappop(busy)[2])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, count = count, count + 1
        found[place] = lane
        heapq.heappush(busy, (end, begin == end, lane))
    return found


def _events(source: Exportable) -> Iterator[dict[str, Any]]:
    process = 0
    for schedule in (each.only_ran() for each in source.result.schedules):
        bars = source.bars_of(schedule)
        machine = process = process + 1
        yield from _named(process, f"{schedule.policy}: {source.result.procs_total} processors")
        yield from _counters(schedule, bars, machine)
        columns = _columns_of(schedule)
        by_host: dict[str, list[ExportedBar]] = {}
        for bar in bars:
            by_host.setdefault(bar.host, []).append(bar)
        for host in sorted(by_host) if len(by_host) > 1 or "machine" not in by_host else ():
            process += 1
            yield from _named(process, f"{schedule.policy}: host {host}")
            yield from _of_host(columns, by_host[host], process)
        if set(by_host) == {"machine"}:
            yield from _of_host(columns, by_host["machine"], machine)


def _named(process: int, name: str) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}}
    yield {
        "ph": "M",
        "name": "process_sort_index",
        "pid": process,
        "tid": 0,
        "args": {"sort_index": process},
    }


def _of_host(
    columns: dict[str, Int64Array], bars: list[ExportedBar], process: int
) -> Iterator[dict[str, Any]]:
    """Yield the lanes of one host, then their bars in order of time, each as a begin and an end."""
    lane_of = lanes(bars)
    for lane in range(max(lane_of) + 1):
        thread = {"pid": process, "tid": lane + 1}
        yield {"ph": "M", "name": "thread_name", **thread, "args": {"name": f"lane {lane + 1}"}}
        yield {"ph": "M", "name": "thread_sort_index", **thread, "args": {"sort_index": lane + 1}}
    for place in sorted(
        range(len(bars)), key=lambda place: (bars[place].begin, bars[place].end, place)
    ):
        bar = bars[place]
        thread = {"pid": process, "tid": lane_of[place] + 1}
        name = f"job {columns['job'][bar.row]}"
        yield {
            "ph": "B",
            "name": name,
            "cat": "job",
            "ts": bar.begin,
            **thread,
            "args": _facts(columns, bar),
        }
        yield {"ph": "E", "name": name, "cat": "job", "ts": bar.end, **thread}


def off_machine(ran: Schedule) -> Int64Array:
    """Return for how long each job, after its start, held no processors: suspended, or back in the
    queue."""
    found = ran.end - ran.start - ran.workload.run
    if ran.pieces is not None:
        job = np.unique(ran.pieces[:, 0])
        found[job] = ran.end[job] - ran.start[job]
        np.subtract.at(found, ran.pieces[:, 0], ran.pieces[:, 2] - ran.pieces[:, 1])
    return np.asarray(found)


def _columns_of(schedule: Schedule) -> dict[str, Int64Array]:
    """Return the columns of facts about the jobs, by the names of the facts."""
    work = schedule.workload
    return {
        "job": work.number,
        "processors": work.procs,
        "submit_s": work.submit,
        "wait_s": job_times(schedule).wait,
        "run_s": work.run,
        "estimate_s": work.estimate,
        "started": schedule.kind.astype(np.int64),
        "suspended_s": off_machine(schedule),
        "pieces": schedule.piece_count,
        "user": work.user,
        "group": work.group,
        "queue": work.queue,
    }


def _facts(columns: dict[str, Int64Array], bar: ExportedBar) -> dict[str, Any]:
    """Return the facts about one job; times in seconds; unknown facts are left out."""
    facts: dict[str, Any] = {}
    for name, column in columns.items():
        value: Any = int(column[bar.row])
        if value < _LEAST.get(name, value):
            continue
        facts[name] = (
            value / MICROSECONDS
            if name.endswith("_s")
            else KINDS[value]
            if name == "started"
            else value
        )
        if name == "processors":
            facts["processors_here"] = bar.procs
    return facts


def _counters(
    schedule: Schedule, bars: Sequence[ExportedBar], process: int
) -> Iterator[dict[str, Any]]:
    """Yield the waiting jobs and the busy processors, at each instant at which they change."""
    procs = np.array([bar.procs for bar in bars], np.int64)
    begin = np.array([bar.begin for bar in bars], np.int64)
    end = np.array([bar.end for bar in bars], np.int64)
    waits = schedule.queue_spans()
    ones = np.ones(len(waits.begin), np.int64)
    for name, unit, up, down, change in (
        ("queue", "jobs", waits.begin, waits.end, ones),
        ("busy", "processors", begin, end, procs),
    ):
        for at, value in _steps(up, down, change):
            yield {
                "ph": "C",
                "name": name,
                "pid": process,
                "tid": 0,
                "ts": at,
                "args": {unit: value},
            }


def _steps(up: Int64Array, down: Int64Array, change: Int64Array) -> Iterator[tuple[int, int]]:
    """Yield the instants at which a level changes, and the level from then on."""
    at, places = np.unique(np.concatenate([up, down]), return_inverse=True)
    change = np.bincount(
        places, weights=np.concatenate([change, -change]), minlength=len(at)
    ).astype(np.int64)
    keep = change != 0
    yield from zip(at[keep].tolist(), np.cumsum(change)[keep].tolist(), strict=True)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode("ascii")
