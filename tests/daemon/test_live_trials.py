"""What a live server keeps of trials: its export says what a replay of the same log says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from qbatch.daemon.export import POLICY, exportable_of
from qbatch.model.machine import one_host
from qbatch.model.record import Int64Array, Schedule
from qbatch.policies.registry import load_policy
from qbatch.results.job_rows import read_job_rows
from qbatch.simulation.drivers import run
from qbatch.simulation.prepare import Options, prepare
from qbatch.wire.records import HostRecord, Trails
from qbatch.wire.requests import Trail
from qbatch.workloads import read_log
from tests.daemon.harness import ROOT, Daemon
from tests.daemon.test_promise import finished

TRACE = ROOT / "traces" / "demo-128.swf"


def replayed(policy: str) -> Schedule:
    machine = one_host(128)
    return run(
        prepare(read_log(str(TRACE)), machine, Options(first=300)), machine, load_policy(policy)
    )


def facts(rows: Schedule) -> list[tuple[int, int, int, int]]:
    """The job, its start, its end and its number of pieces, by the place in the log; times from the
    first submission."""
    zero = int(rows.workload.submit.min())
    columns = (np.arange(len(rows)), rows.start - zero, rows.end - zero, rows.piece_count)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def pieces(rows: Schedule) -> list[tuple[int, ...]]:
    zero = int(rows.workload.submit.min())
    assert rows.pieces is not None
    found: Int64Array = rows.pieces - np.array([0, zero, zero, 0, 0, 0])
    return sorted(map(tuple, found.tolist()))


@pytest.mark.parametrize(
    "policy", ["immediate:inner=easy", "immediate:inner=lsf", "soon:inner=easy"]
)
def test_what_really_ran_equals_the_replay(policy: str, tmp_path: Path) -> None:
    expected = replayed(policy)
    options = ("--trace", str(TRACE), "--first", "300", "--policy", policy, "--time", "virtual")
    with Daemon(tmp_path, *options) as daemon:
        records = finished(daemon)
        notes = {
            form: daemon.run("qbatch", "export", form, "-o", form).stderr
            for form in ("parquet", "chrome", "swf")
        }
        for arguments in ((), ("--policy", "easy")):
            said = daemon.run("qbatch", "verify", "swf", *arguments, code=0)
            assert "not checked  capacity and run times" in said.stdout
        tried = next(record for record in records if record.trials)
        with daemon.session() as session:
            trail = session.ask(Trail(job=tried.id), Trails).entries
    [rows] = read_job_rows(tmp_path / "parquet")
    assert facts(rows) == facts(expected)
    host = records[0].exec_host.partition("/")[0]
    exported, *_ = exportable_of(
        records, [HostRecord(name=host, pool="main", state="free", cpus=128)], "here"
    )
    [live] = exported.result.schedules
    assert pieces(live) == pieces(expected)
    assert live.pieces is not None
    assert (
        np.count_nonzero(live.pieces[:, 5] == 0)
        == sum(len(record.trials) for record in records)
        > 0
    )
    assert sum(
        bar.end - bar.begin
        for bar in exported.bars[POLICY]
        if bar.row in set(live.pieces[:, 0].tolist())
    ) == int((live.pieces[:, 2] - live.pieces[:, 1]).sum())
    events = json.loads((tmp_path / "chrome").read_text(encoding="utf-8"))["traceEvents"]
    assert sum(event["ph"] == "B" for event in events) == len(live.pieces) + int(
        (live.piece_count == 0).sum()
    )
    log = read_log(str(tmp_path / "swf"))
    assert (log["wait"] == ((rows.start - rows.workload.submit) / 1e6)).all()
    assert (log["run"] == (rows.workload.run / 1e6)).all()
    assert log.header.preemption == "TS"
    assert "field 4" in notes["swf"]
    assert "end - start" not in notes["swf"]
    assert sum("several intervals" in note for note in notes.values()) == 2
    texts = [entry.text for entry in trail]
    assert texts.count("its quantum is over; queued again") == len(tried.trials)
    assert sum(text.startswith("Job Run at request of") for text in texts) == len(tried.trials) + 1
    assert [entry.at for entry in trail] == sorted(entry.at for entry in trail)
