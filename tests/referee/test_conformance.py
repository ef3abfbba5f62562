"""The conformance workloads: right by the oracle and by both drivers, and every wrong schedule is
rejected."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from qbatch.model.errors import OutputError
from qbatch.model.machine import one_host
from qbatch.model.record import MICROSECONDS
from qbatch.policies import load_policy
from qbatch.referee.conformance import Conformance, conformance_workloads, write_conformance
from qbatch.referee.verify import CODES, judge, read_finished
from qbatch.simulation import prepare, run
from qbatch.workloads import read_log
from tests.oracle import naive

WORKLOADS = conformance_workloads()
POLICIES = ("fcfs", "easy", "conservative", "conservative:compress=start")
RIGHT = [
    pytest.param(each, policy, id=f"{each.name}-{policy}")
    for each in WORKLOADS
    for policy in each.expected
]
WRONG = [
    pytest.param(each, wrong, id=f"{each.name}-{wrong.policy}-{wrong.code}")
    for each in WORKLOADS
    for wrong in each.wrong
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("conformance") / "set"
    assert write_conformance(found) == len(WORKLOADS)
    return found


def starts(each: Conformance, policy: str) -> list[int]:
    return [run.start for run in each.expected[policy] if run is not None]


def test_the_set_has_a_trap_each_and_all_policies() -> None:
    assert len(WORKLOADS) >= 11
    assert len({each.trap for each in WORKLOADS}) == len(WORKLOADS)
    for each in WORKLOADS:
        assert tuple(each.expected) == POLICIES, each.name
        assert each.wrong, each.name
        assert {wrong.code for wrong in each.wrong} <= CODES.keys()
    found = {wrong.code for each in WORKLOADS for wrong in each.wrong}
    assert {
        "head-delayed",
        "extra-misused",
        "clairvoyant",
        "needless-wait",
        "promise-broken",
        "overrun",
    } <= found


@pytest.mark.parametrize(("each", "policy"), RIGHT)
def test_the_oracle_agrees(each: Conformance, policy: str) -> None:
    second = MICROSECONDS
    jobs = [
        naive.Job(
            job.number,
            job.submit * second,
            job.procs,
            (job.estimate or job.run) * second,
            job.run_allowed * second,
        )
        for job in each.jobs
        if job.procs <= each.procs
    ]
    if policy in ("fcfs", "easy"):
        outcomes = {"fcfs": naive.fcfs, "easy": naive.easy}[policy](jobs, each.procs)
    else:
        outcomes = naive.conservative(
            jobs, each.procs, policy.partition("compress=")[2] or "arrival"
        )
    assert [outcome.start // MICROSECONDS for outcome in outcomes] == starts(each, policy)


@pytest.mark.parametrize("driver", ["engine", "compiled"])
@pytest.mark.parametrize(("each", "policy"), RIGHT)
def test_both_drivers_agree(each: Conformance, policy: str, driver: str, folder: Path) -> None:
    log = read_log(str(folder / f"{each.name}.txt"))
    machine = one_host(each.procs)
    schedule = run(
        prepare(log, machine), machine, load_policy(policy), driver=driver, is_audited=True
    )
    assert (schedule.start // MICROSECONDS).tolist() == starts(each, policy)


@pytest.mark.parametrize(("each", "policy"), RIGHT)
def test_right_schedules_are_kept(each: Conformance, policy: str, folder: Path) -> None:
    verdict = judge(each.finished(each.expected[policy]), policy)
    assert verdict.is_kept, verdict.breaches[0]
    [(read, _)] = read_finished(
        str(folder / "right" / f"{each.name}.{policy.replace(':', '-').replace('=', '-')}.swf")
    )
    assert judge(read, policy).is_kept
    assert (read.start // MICROSECONDS).tolist() == starts(each, policy)


@pytest.mark.parametrize(("each", "wrong"), WRONG)
def test_wrong_schedules_are_rejected(each: Conformance, wrong, folder: Path) -> None:
    first = judge(each.finished(wrong.runs), wrong.policy).breaches[0]
    assert first.code == wrong.code
    place = each.wrong.index(wrong) + 1
    policy = wrong.policy.replace(":", "-").replace("=", "-")
    [(read, _)] = read_finished(
        str(folder / "wrong" / f"{each.name}.{policy}.{place}.{wrong.code}.swf")
    )
    assert judge(read, wrong.policy).breaches[0] == first


def test_the_written_set_says_the_same_in_every_form(folder: Path) -> None:
    with open(folder / "expected.csv", newline="") as file:
        table = list(csv.DictReader(file))
    for each in WORKLOADS:
        text, swf = (read_log(str(folder / f"{each.name}.{form}")) for form in ("txt", "swf"))
        for name in ("job", "submit", "run"):
            assert np.array_equal(text[name], swf[name])
        assert np.array_equal(text.procs, swf.procs)
        assert np.array_equal(
            np.maximum(text["time_requested"], 0), np.maximum(swf["time_requested"], 0)
        )
        assert text.header.max_procs == swf.header.max_procs == each.procs
        for policy in each.expected:
            rows = [row for row in table if (row["workload"], row["policy"]) == (each.name, policy)]
            assert [int(row["start"]) for row in rows if row["start"]] == starts(each, policy)
    readme = (folder / "README.txt").read_text()
    assert all(each.name in readme and each.trap in readme for each in WORKLOADS)


def test_a_directory_that_cannot_be_made_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be created"):
        write_conformance(tmp_path / "file" / "set")
