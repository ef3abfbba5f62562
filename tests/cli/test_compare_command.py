"""``qbatch compare`` as a user types it."""

from __future__ import annotations

import json

import pytest

from qbatch.cli.main import run
from qbatch.model.machine import Host, Machine
from qbatch.results.job_rows import write_job_rows
from qbatch.results.result import write_result
from tests.reports.samples import random_workload, scheduled

S = 1_000_000


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for seed in (1, 2, 3):
        work = random_workload(80, seed)
        write_result(folder / f"both{seed}", {}, [scheduled(work), scheduled(work, "fcfs")])
    work = random_workload(80, 1)
    write_result(folder / "easy", {}, [scheduled(work)])
    write_result(folder / "colon", {}, [scheduled(work, "fcfs", "hybrid:depth=2"), scheduled(work)])
    return folder


def command(capfd, *arguments):
    code = run(["compare", *map(str, arguments)])
    out, err = capfd.readouterr()
    return code, out, err


def test_a_directory_of_two_policies_is_compared_with_itself(capfd, results) -> None:
    code, out, _ = command(capfd, results / "both1")
    assert code == 0
    assert "80 common jobs" in out
    assert "Mean wait: easy is better than fcfs" in out
    assert "by class" not in out.splitlines()[0]
    assert "Politis" in out


def test_json_is_the_record_of_the_table_and_is_the_same_each_time(capfd, results) -> None:
    _, out, _ = command(
        capfd, f"{results / 'both1'}:easy", f"{results / 'both1'}:fcfs", "--json", "--seed", "3"
    )
    document = json.loads(out)
    assert document["schema"] == "qbatch.compare/1"
    assert document["a"]["policy"] == "easy"
    assert set(document["parts"]) == {"class", "month"}
    _, table, _ = command(capfd, results / "both1")
    for record in document["metrics"]:
        assert record["sentence"] in table
    _, again, _ = command(
        capfd, f"{results / 'both1'}:easy", f"{results / 'both1'}:fcfs", "--json", "--seed", "3"
    )
    assert again == out


def test_policies_with_colons_and_equal_names_are_distinguished(capfd, results) -> None:
    code, out, _ = command(capfd, f"{results / 'colon'}:hybrid:depth=2", results / "easy")
    assert code == 0
    assert "easy is better than hybrid:depth=2" in out
    code, out, _ = command(capfd, results / "easy", f"{results / 'colon'}:easy", "--by", "user")
    assert code == 0
    assert "are equal" in out
    assert str(results / "easy") in out


def test_replicas_are_taken_with_the_first_pair(capfd, results) -> None:
    code, out, _ = command(
        capfd, results / "both1", "--with", results / "both2", "--with", results / "both3", "--json"
    )
    assert code == 0
    assert json.loads(out)["pairs"] == 3
    _, out, _ = command(capfd, results / "both1", "--with", results / "both2")
    assert (
        "2 pairs; effects and parts are those of the first pair, but a part that holds every job "
        "is as the whole."
    ) in out


def test_a_result_is_no_replica_of_itself(capfd, results, tmp_path) -> None:
    (tmp_path / "link").symlink_to(results / "both1")
    for given in (
        (results / "both1",),
        (results / "both2", results / "both2"),
        (tmp_path / "link",),
    ):
        options = [each for path in given for each in ("--with", path)]
        code, _, err = command(capfd, results / "both1", *options)
        assert (
            code,
            "is compared already; a replica is a result of another seed or log" in err,
        ) == (2, True), given
    code, _, _ = command(
        capfd, f"{results / 'both1'}:easy", f"{results / 'both1'}:fcfs", "--with", results / "both1"
    )
    assert code == 2


@pytest.fixture(scope="module")
def replays(tmp_path_factory):
    """Results of one generated log under other seeds and options, and of a log of another seed of
    the generator."""
    folder = tmp_path_factory.mktemp("replays")
    for seed in (1, 2):
        make = ["trace", "generate", "--jobs", "120", "--procs", "32", "--seed", str(seed)]
        assert run([*make, "--out", str(folder / f"log{seed}.swf")]) == 0
    both = ["--policy", "fcfs", "--policy", "easy", "--estimates", "f:3", "--quiet"]
    for name, changes in {
        "first": ["--seed", "1"],
        "second": ["--seed", "2"],
        "load": ["--seed", "2", "--load", "0.7"],
        "factor": ["--seed", "2", "--estimates", "f:4"],
        "nokill": ["--seed", "2", "--no-kill"],
        "part": ["--seed", "2", "--first", "100"],
        "warm": ["--seed", "2", "--warmup", "1h"],
        "wide": ["--seed", "2", "--procs", "40"],
        "again": ["--seed", "1"],
        "perfect1": ["--seed", "1", "--estimates", "perfect"],
        "perfect2": ["--seed", "2", "--estimates", "perfect"],
    }.items():
        assert (
            run(["replay", str(folder / "log1.swf"), *both, *changes, "--out", str(folder / name)])
            == 0
        )
    assert (
        run(
            [
                "replay",
                str(folder / "log2.swf"),
                *both,
                "--seed",
                "1",
                "--out",
                str(folder / "other"),
            ]
        )
        == 0
    )
    return folder


@pytest.mark.parametrize(
    ("replica", "reason"),
    [
        ("load", "was run with load = 0.7, but first:fcfs with 1.0"),
        ("factor", "was run with estimates = f:4, but first:fcfs with f:3"),
        ("nokill", "was run with kill = False, but first:fcfs with True"),
        ("part", "was run with first = 100, but first:fcfs with None"),
        ("warm", "was run with warmup = 3600.0, but first:fcfs with 0.0"),
        ("wide", "has a machine of 40 processors, but first:fcfs one of 32"),
        ("other", "is of another log"),
        ("again", "holds the same schedules as first:easy"),
    ],
)
def test_what_is_no_replica_is_refused_as_a_report_refuses_it(
    capfd, replays, monkeypatch, replica, reason
) -> None:
    monkeypatch.chdir(replays)
    code, out, err = command(capfd, "first", "--with", "second", "--with", replica)
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert f"{replica}: {reason}" in err
    if replica != "other":
        assert run(["report", "first", "second", replica, "-o", "page.html"]) == 3
        printed = capfd.readouterr().err
        assert (
            reason.replace("first:fcfs", "first").split(",")[0] in printed
            or "leave one of the two out" in printed
        )


def test_replicas_of_other_logs_are_taken_where_that_is_asked_for_and_said(
    capfd, replays, monkeypatch
) -> None:
    monkeypatch.chdir(replays)
    code, out, err = command(capfd, "first", "--with", "second", "--json")
    assert (code, json.loads(out)["pairs"], err) == (0, 2, "")
    assert command(capfd, "first", "--with", "other")[2].endswith(
        "--logs-differ allows other logs as replicas too\n"
    )
    code, out, err = command(capfd, "first", "--with", "other", "--logs-differ")
    assert code == 0
    assert "the pairs are of 2 different logs, as requested; values are means over them" in err
    assert command(capfd, "first", "--logs-differ")[0] == 2


def test_another_seed_that_draws_nothing_is_no_replica(capfd, replays, monkeypatch) -> None:
    monkeypatch.chdir(replays)
    code, _, err = command(capfd, "perfect1", "--with", "perfect2")
    assert (code, "perfect2: holds the same schedules as perfect1:easy" in err) == (3, True)


def test_a_pair_of_unlike_runs_says_in_what(capfd, replays, monkeypatch) -> None:
    monkeypatch.chdir(replays)
    code, out, err = command(capfd, "first:easy", "load:easy")
    assert code == 0
    assert "note: load:easy was run with load = 0.7, but first:easy with 1.0" in err
    assert (
        "A: log1.swf; 32 processors; estimates f:3 (seed 1); jobs end at their estimates\nB: "
        "log1.swf"
    ) in out
    _, out, _ = command(capfd, "first")
    assert (
        out.splitlines()[1]
        == "log1.swf; 32 processors; estimates f:3 (seed 1); jobs end at their estimates"
    )


def test_machines_that_differ_only_in_their_classes_or_memory_are_unlike() -> None:
    one = Machine((Host("a", 8), Host("b", 8)), single_host=True)
    assert (
        one.digest == Machine((Host("x", 8), Host("y", 8)), single_host=True, name="other").digest
    )
    assert (
        one.digest != Machine((Host("a", 8, memory=2**30), Host("b", 8)), single_host=True).digest
    )
    assert one.digest != Machine((Host("a", 8), Host("b", 8)), single_host=True, per_user=1).digest


def test_what_a_machine_did_is_not_compared_where_its_size_is_a_guess(
    capfd, results, tmp_path
) -> None:
    rows = tmp_path / "rows.csv"
    with rows.open("wb") as file:
        write_job_rows(file, [scheduled(random_workload(80, 1))], ".csv")
    code, out, err = command(capfd, rows, f"{results / 'both1'}:fcfs")
    assert code == 0
    assert "tilisation" not in out
    assert "Makespan" in out
    assert (
        "note: utilisation is not compared: bare job rows do not contain the size of the machine "
        f"of {rows}"
    ) in err
    assert err.count("--procs N") == 1
    code, out, err = command(capfd, rows, f"{results / 'both1'}:fcfs", "--procs", 16)
    assert (code, err) == (0, "")
    _, whole, _ = command(capfd, f"{results / 'both1'}:easy", f"{results / 'both1'}:fcfs")
    assert [line for line in out.splitlines() if "tilisation" in line] == [
        line for line in whole.splitlines() if "tilisation" in line
    ]
    code, out, err = command(capfd, rows, f"{results / 'both1'}:fcfs", "--procs", 17)
    assert "tilisation" not in out
    assert "note: utilisation is not compared: the machines differ: 17 and 16 processors" in err


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["easy"], 2, "holds easy; name B too"),
        (["both1", "--procs", "9"], 2, "--procs is for bare job rows"),
        (["both1", "easy"], 2, "holds 2 policies; name one of"),
        (["both1:eassy", "easy"], 2, "did you mean 'easy'"),
        (["none", "easy"], 3, "cannot be read"),
        (["both1", "--by", "mont"], 2, "did you mean 'month'"),
        (["both1", "--confidence", "95"], 2, "0.95 is usual"),
        (["both1", "--practical", "-1"], 2, "such as 0.01"),
        (["both1", "--with", "easy"], 2, "no policy 'fcfs'"),
        (["easy", "colon:easy", "--with", "both2"], 2, "replicas need two policies"),
    ],
)
def test_mistakes_are_one_line_with_a_way_out(
    capfd, results, monkeypatch, arguments, code, reason
) -> None:
    monkeypatch.chdir(results)
    got, out, err = command(capfd, *arguments)
    assert (got, out, err.count("\n")) == (code, "", 1)
    assert reason in err


def test_queues_go_by_the_names_that_the_log_gives_them(capfd, tmp_path) -> None:
    rows = [
        f"{job} {9 * job} -1 {60 * (1 + job % 7)} 3 -1 -1 3 600 -1 1 1 1 -1 {job % 3} -1 -1 -1"
        for job in range(1, 61)
    ]
    header = ["; MaxProcs: 4", "; Queue: 0 interactive", "; Queue: 1 express"]
    (tmp_path / "log.swf").write_text("\n".join([*header, *rows]) + "\n")
    replay = [
        "replay",
        str(tmp_path / "log.swf"),
        "-p",
        "fcfs",
        "-p",
        "easy:order=sjf",
        "--by",
        "queue",
    ]
    assert run([*replay, "--json", "--out", str(tmp_path / "out")]) == 0
    groups = json.loads(capfd.readouterr().out)["results"][0]["by"]["queue"]
    assert [group["label"] for group in groups] == ["interactive", "express", "2"]
    assert json.loads((tmp_path / "out" / "result.json").read_text())["queues"] == {
        "0": "interactive",
        "1": "express",
    }
    code, out, _ = command(capfd, tmp_path / "out", "--by", "queue", "--json")
    assert code == 0
    labels = [record["label"] for record in json.loads(out)["parts"]["queue"]]
    assert list(dict.fromkeys(labels)) == ["interactive", "express", "2"]
