"""A schedule in the trace event format of Chrome, which Perfetto (ui.perfetto.dev) shows.

Source: "Trace Event Format" (the Chromium project).  A process is a host, or a policy's whole machine where hosts are not
known; a thread is a lane, which holds one job at a time; ``B`` and ``E`` are where a job runs, once for each of its pieces;
``C`` are counters of waiting jobs and busy processors; ``M`` names things.  Times are microseconds of the log's own clock.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from qbatch.model.record import KINDS, MICROSECONDS, Int64Array
from qbatch.results.exports.exportable import Exportable, ExportedBar
from qbatch.results.job_rows import JobRows
from qbatch.results.pieces import off_machine, waits_of

_EVENTS_AT_ONCE = 4096


def write_chrome(out: BinaryIO, source: Exportable) -> None:
    """Write the trace of all policies of the result, one after another in the list of processes."""
    result = source.result
    said = {
        "source": result.name, "policies": list(result.policies), "processors": result.procs_total,
        "unix_start_s": result.clock.unix_start, "time_zone": result.clock.zone,
    }  # fmt: skip
    out.write(b'{"displayTimeUnit":"ms","otherData":' + _json(said) + b',"traceEvents":[\n')
    first = True
    for events in _blocks(_events(source)):
        out.write((b"" if first else b",\n") + b",\n".join(map(_json, events)))
        first = False
    out.write(b"\n]}\n")


def lanes(bars: Sequence[ExportedBar]) -> list[int]:
    """Return a lane for each bar, the lowest that is free: no two bars of a lane have an instant in common.

    A bar is half-open, so one may begin where another ends; a bar of no length takes its instant for itself.
    """
    free: list[int] = []
    busy: list[tuple[int, bool, int]] = []
    count = 0
    found = [0] * len(bars)
    for place in sorted(range(len(bars)), key=lambda place: (bars[place].begin, bars[place].end, place)):
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
    for rows in source.result.rows:
        bars = source.bars_of(rows)
        machine = process = process + 1
        name = f"{rows.policy}: {source.result.procs_total} processors"
        yield from _named(process, name)
        yield from _counters(rows, bars, machine)
        by_host: dict[str, list[ExportedBar]] = {}
        for bar in bars:
            by_host.setdefault(bar.host, []).append(bar)
        for host in sorted(by_host) if len(by_host) > 1 or "machine" not in by_host else ():
            process += 1
            yield from _named(process, f"{rows.policy}: host {host}")
            yield from _of_host(rows, by_host[host], process)
        if set(by_host) == {"machine"}:
            yield from _of_host(rows, by_host["machine"], machine)


def _named(process: int, name: str) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}}
    yield {"ph": "M", "name": "process_sort_index", "pid": process, "tid": 0, "args": {"sort_index": process}}


def _of_host(rows: JobRows, bars: list[ExportedBar], process: int) -> Iterator[dict[str, Any]]:
    """Yield the lanes of one host, then their bars in order of time, each as a begin and an end."""
    lane_of = lanes(bars)
    suspended = off_machine(rows).tolist()
    for lane in range(max(lane_of) + 1):
        thread = {"pid": process, "tid": lane + 1}
        yield {"ph": "M", "name": "thread_name", **thread, "args": {"name": f"lane {lane + 1}"}}
        yield {"ph": "M", "name": "thread_sort_index", **thread, "args": {"sort_index": lane + 1}}
    for place in sorted(range(len(bars)), key=lambda place: (bars[place].begin, bars[place].end, place)):
        bar = bars[place]
        thread = {"pid": process, "tid": lane_of[place] + 1}
        name = f"job {rows.job_id[bar.row]}"
        yield {
            "ph": "B",
            "name": name,
            "cat": "job",
            "ts": bar.begin,
            **thread,
            "args": _facts(rows, bar, suspended[bar.row]),
        }
        yield {"ph": "E", "name": name, "cat": "job", "ts": bar.end, **thread}


def _facts(rows: JobRows, bar: ExportedBar, suspended: int) -> dict[str, Any]:
    """Return what the job's pane shows; times in seconds; what is not known is left out."""
    row = bar.row
    kind = int(rows.kind[row])
    pieces = int(rows.piece_count[row])
    facts: dict[str, Any] = {
        "job": int(rows.job_id[row]),
        "processors": int(rows.procs[row]),
        "processors_here": bar.procs,
        "submit_s": _seconds(rows.submit, row),
        "wait_s": _seconds(rows.wait, row),
        "run_s": _seconds(rows.run, row),
        "estimate_s": _seconds(rows.estimate, row),
        "started": KINDS[kind] if kind >= 0 else None,
        "suspended_s": suspended / MICROSECONDS if suspended > 0 else None,
        "pieces": pieces if pieces > 0 else None,
    }
    facts |= {
        name: int(getattr(rows, name)[row]) for name in ("user", "group", "queue") if getattr(rows, name)[row] >= 0
    }
    return {name: value for name, value in facts.items() if value is not None}


def _seconds(times: Int64Array, row: int) -> float:
    return int(times[row]) / MICROSECONDS


def _counters(rows: JobRows, bars: Sequence[ExportedBar], process: int) -> Iterator[dict[str, Any]]:
    """Yield the waiting jobs and the busy processors, at each instant at which they change."""
    procs = np.array([bar.procs for bar in bars], np.int64)
    begin = np.array([bar.begin for bar in bars], np.int64)
    end = np.array([bar.end for bar in bars], np.int64)
    waits = waits_of(rows)
    ones = np.ones(len(waits.begin), np.int64)
    for name, unit, up, down, change in (
        ("queue", "jobs", waits.begin, waits.end, ones), ("busy", "processors", begin, end, procs),
    ):  # fmt: skip
        for at, value in _steps(up, down, change):
            yield {"ph": "C", "name": name, "pid": process, "tid": 0, "ts": at, "args": {unit: value}}


def _steps(up: Int64Array, down: Int64Array, change: Int64Array) -> Iterator[tuple[int, int]]:
    """Yield the instants at which a level changes, and the level from then on."""
    at, places = np.unique(np.concatenate([up, down]), return_inverse=True)
    change = np.bincount(places, weights=np.concatenate([change, -change]), minlength=len(at)).astype(np.int64)
    keep = change != 0
    yield from zip(at[keep].tolist(), np.cumsum(change)[keep].tolist(), strict=True)


def _blocks(events: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    block: list[dict[str, Any]] = []
    for event in events:
        block.append(event)
        if len(block) == _EVENTS_AT_ONCE:
            yield block
            block = []
    if block:
        yield block


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode("ascii")
