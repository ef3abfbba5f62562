"""Jobs that live inside one of several hosts: their rows name it, charts deal out by host, the
referee checks each host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qbatch.cli.main import run
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.record import MICROSECONDS, Schedule
from qbatch.policies import load_policy
from qbatch.referee.verify import Conditions, judge
from qbatch.reports.plots import view_of
from qbatch.results.boxes import assign
from qbatch.results.reading import read_result
from qbatch.results.result import write_result
from qbatch.simulation import run as run_policy

from .samples import workload

CPUS = (6, 4, 8)
MACHINE = Machine(
    tuple(Host(f"h{place}", cpus) for place, cpus in enumerate(CPUS)), single_host=True
)
TOLD = {
    "machine": {
        "hosts": 3,
        "one_pool": False,
        "host_names": ["a", "b", "c"],
        "host_cpus": list(CPUS),
    }
}
POLICIES = ("fcfs-backfill", "lxfw-backfill", "immediate:inner=fcfs-backfill", "equispatial")


def made(policy: str, seed: int = 1, machine: Machine = MACHINE) -> Schedule:
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 3000, 60)) * MICROSECONDS
    run_ = rng.integers(1, 2000, 60) * MICROSECONDS
    return run_policy(
        workload(submit, rng.integers(1, 7, 60), run_, run_, procs_total=machine.procs),
        machine,
        load_policy(policy),
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_rows_name_hosts_that_are_never_overfull_and_boxes_lie_in_them(policy: str) -> None:
    rows = made(policy)
    assert set(rows.host.tolist()) == {0, 1, 2}
    spans = rows.spans()
    edges = np.cumsum([0, *CPUS])
    boxes = assign(rows, sum(CPUS), CPUS)
    for at in sorted({*spans.begin.tolist(), *spans.end.tolist()}):
        there = (boxes.begin <= at) & (at < boxes.end)
        taken = [
            cell
            for low, high in zip(boxes.low[there], boxes.high[there], strict=True)
            for cell in range(low, high)
        ]
        assert len(taken) == len(set(taken))
        for host, cpus in enumerate(CPUS):
            runs = (spans.begin <= at) & (at < spans.end) & (spans.host == host)
            used = int(spans.procs[runs].sum())
            assert used <= cpus
            assert sum(edges[host] <= cell < edges[host + 1] for cell in taken) == used
            cells = there & (boxes.low >= edges[host]) & (boxes.high <= edges[host + 1])
            assert set(boxes.job[cells].tolist()) == set(spans.job[runs].tolist())


def test_one_host_and_one_pool_name_none() -> None:
    for machine in (one_host(18), Machine(MACHINE.hosts)):
        schedule = made("fcfs-backfill", machine=machine)
        assert schedule.host is None
        assert set(schedule.spans().host.tolist()) == {-1}


@pytest.mark.parametrize("policy", POLICIES)
def test_hosts_come_back_from_a_result_and_the_referee_checks_each(
    policy: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    schedule = made(policy)
    write_result(tmp_path / "out", TOLD, [schedule])
    result = read_result(tmp_path / "out")
    assert (result.host_cpus, result.host_names) == (CPUS, ("a", "b", "c"))
    (rows,) = result.schedules
    assert np.array_equal(rows.host, schedule.host)
    done, known = schedule, Conditions(CPUS, is_one_pool=False)
    verdict = judge(done, policy, known)
    assert verdict.is_kept, verdict.breaches[:1]
    assert "capacity of each of 3 hosts at every instant" in verdict.checked
    pieces = None if done.pieces is None else done.pieces.copy()
    if pieces is not None:
        pieces[:, 4] = 1
    crowded = replace(done, host=np.ones_like(done.host), pieces=pieces)
    breaches = judge(crowded, policy, known).breaches
    assert {breach.code for breach in breaches} == {"capacity"}
    assert "of 4 processors of host 1 in use" in breaches[0].text
    # With all hosts taken for one pool it goes unnoticed.
    assert judge(crowded, policy, Conditions(is_one_pool=False)).is_kept


@pytest.mark.parametrize(
    "machine",
    [
        {},
        {"host_cpus": "6, 4, 8"},
        {"host_cpus": [6, 4]},
        {"host_cpus": [6, 4, 0, 8]},
        {"host_cpus": [18]},
        {"host_cpus": [12, 6]},
    ],
)
def test_hosts_that_do_not_fit_the_rows_are_none(
    machine: dict[str, object], tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    write_result(tmp_path / "out", {"machine": machine}, [made("fcfs-backfill")])
    result = read_result(tmp_path / "out")
    assert (result.host_cpus, result.host_names) == ((), ())


def test_a_replay_on_hosts_is_drawn_and_verified_by_host(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pyarrow")
    from qbatch.reports.gantt import gantt
    from qbatch.reports.plot_style import styled

    hosts = "".join(
        f'[[host]]\nname = "n{place}"\ncpus = {cpus}\n' for place, cpus in enumerate(CPUS)
    )
    (tmp_path / "machine.toml").write_text(f"schema = 1\nsingle_host = true\n{hosts}")
    (tmp_path / "log.txt").write_text("0 100 4\n5 100 4\n10 100 4\n12 50 6\n")
    out = tmp_path / "out"
    replay = [
        "replay",
        str(tmp_path / "log.txt"),
        "--machine",
        str(tmp_path / "machine.toml"),
        "-p",
        "fcfs-backfill",
    ]
    assert run([*replay, "--out", str(out), "-q"]) == 0
    assert run(["verify", str(out)]) == 0
    said = capsys.readouterr().out
    assert "checked      capacity of each of 3 hosts at every instant" in said
    assert "not checked  memory of hosts: job rows do not contain it" in said
    with styled():
        figure = gantt(view_of(read_result(out)))
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["n0", "n1", "n2"]
    assert axes.get_ylabel() == "Host"
    for form in ("batsim", "csv"):
        assert run(["export", form, str(out), "-o", str(tmp_path / form)]) == 0
    assert run(["report", str(out), "-o", str(tmp_path / "r.html")]) == 0
    assert run(["plot", str(out), "--kind", "gantt", "-o", str(tmp_path / "g.png")]) == 0
