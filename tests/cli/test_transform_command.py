"""``qbatch transform`` and ``qbatch replay --deadlines``, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qbatch.workloads import read_log
from qbatch.workloads.resource_rows import read_resources
from tests.harness import command as qbatch


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("transform")
    steps = (
        "take:first=300",
        "estimates",
        "duplicate:load=1.4",
        "deadlines:stringency=0.2,share=0.8",
    )
    out = ("-o", str(folder / "log.swf"), "--deadlines", str(folder / "log.csv"))
    said = qbatch("transform", "traces/demo-128.swf", *steps, *out)
    assert said.stderr.strip().splitlines()[-1].startswith("420 jobs, ")
    return folder


def test_a_replay_keeps_the_deadlines_and_verify_checks_them(made: Path) -> None:
    log, side = str(made / "log.swf"), str(made / "log.csv")
    done = qbatch(
        "replay",
        log,
        "--deadlines",
        side,
        "-p",
        "qops",
        "-p",
        "easy",
        "--out",
        str(made / "result"),
        "--json",
    )
    document = json.loads(done.stdout)
    qops, easy = (each["metrics"] for each in document["results"])
    assert document["deadlines"] == len(Path(side).read_text().splitlines()) - 1
    assert qops["rejected_count"] > 0
    assert easy.get("rejected_count") is None
    said = qbatch("verify", f"{made / 'result'}:qops")
    assert "the deadlines of " in said.stdout + said.stderr
    late = qbatch("verify", f"{made / 'result'}:easy", "--policy", "qops", code=1)
    assert "deadline-missed" in late.stdout + late.stderr
    plain = qbatch("verify", f"{made / 'result'}:easy")
    assert "easy keeps none" in plain.stdout + plain.stderr


def test_the_same_seed_gives_the_same_log(made: Path, tmp_path: Path) -> None:
    steps = (
        "take:first=300",
        "estimates",
        "duplicate:load=1.4",
        "deadlines:stringency=0.2,share=0.8",
    )
    qbatch(
        "transform",
        "traces/demo-128.swf",
        *steps,
        "-o",
        str(tmp_path / "again.swf"),
        "--deadlines",
        str(tmp_path / "again.csv"),
    )
    assert (tmp_path / "again.swf").read_bytes() == (made / "log.swf").read_bytes()
    assert (tmp_path / "again.csv").read_bytes() == (made / "log.csv").read_bytes()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "a LOG is missing"),
        (("traces/demo-128.swf", "deadlines:stringency=0"), 2, "add --deadlines FILE"),
        (("traces/demo-128.swf", "speed:up=1"), 2, "there is no step 'speed'"),
        (("traces/none.swf", "estimates"), 3, "traces/none.swf"),
        (
            ("traces/demo-128.swf", "estimates:model=tsafrir,max=3600"),
            2,
            "jobs run longer, the longest",
        ),
        (("packed:kind=round",), 2, "use static or dynamic"),
        (("packed:procs=x",), 2, "whole numbers"),
    ],
)
def test_mistakes_are_reported_in_one_line(words: tuple[str, ...], code: int, said: str) -> None:
    done = qbatch("transform", *words, code=code)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().count("\n") == 0


def test_a_packed_set_is_admitted_whole_if_it_fits_and_steps_are_listed(tmp_path: Path) -> None:
    log, side = str(tmp_path / "p.swf"), str(tmp_path / "p.csv")
    qbatch(
        "transform", "packed:kind=dynamic,slack=0.1", "--seed", "2", "-o", log, "--deadlines", side
    )
    document = json.loads(
        qbatch(
            "replay", log, "--deadlines", side, "-p", "qops", "-p", "msb", "-p", "mrt", "--json"
        ).stdout
    )
    assert [each["rejected"] for each in document["results"]] == [0, 0, 0]
    steps = qbatch("transform", "--list").stdout
    assert "duplicate" in steps
    assert "model=exact, [max], [seed]" in steps


def test_estimates_of_users_take_the_place_of_those_of_the_log(tmp_path: Path) -> None:
    log = str(tmp_path / "log.swf")
    qbatch(
        "transform",
        "traces/demo-128.swf",
        "estimates:model=tsafrir,max=86400",
        "--seed",
        "4",
        "-o",
        log,
    )
    facts = json.loads(qbatch("trace", "info", log, "--json").stdout)
    assert facts["estimates"]["top"][0]["time_s"] == 86_400
    assert facts["jobs"]["longer_than_estimate"] == 0
    assert "estimates: model=tsafrir, max=86400, seed=4" in facts["header"]["notes"]


SIDE = "job,nodes,cpus_per_node,gpus_per_node,qos,partitions\n"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Four jobs over 15 days, three of them with a line in the side file."""
    rows = [(5, 0, 1), (6, 100, 2), (9, 700_000, 3), (12, 1_290_000, 4)]
    (tmp_path / "c.swf").write_text(
        "; MaxProcs: 64\n; UnixStartTime: 1735516800\n"
        + "".join(f"{n} {at} -1 10 {p} -1 -1 {p} 60 -1 1 1 1 -1 1 -1 -1 -1\n" for n, at, p in rows)
    )
    (tmp_path / "c.csv").write_text(f'{SIDE}12,1,4,4,low,"gpu,x"\n5,1,1,1,,\n6,2,1,0,high,\n')
    return tmp_path


def lines_of(path: Path) -> list[str]:
    header, *rows = path.read_text().splitlines(keepends=True)
    assert header == SIDE
    return rows


def test_jobs_that_are_dropped_or_longer_keep_their_lines(cluster: Path) -> None:
    qbatch("transform", "c.swf", "take:skip=1", "expand:load=2", "--resources", "c.csv",
           "-o", "d.swf.gz", cwd=cluster)  # fmt: skip
    assert lines_of(cluster / "d.resources.csv") == ["6,2,1,0,high,\n", '12,1,4,4,low,"gpu,x"\n']
    log = read_log(str(cluster / "d.swf.gz"))
    assert log["job"].tolist() == [6, 9, 12]
    assert read_resources(str(cluster / "d.resources.csv"), log).of.tolist() == [0, -1, 1]


@pytest.mark.parametrize(
    "step", ["duplicate:load=2", "resample:by=weeks,seed=3", "resample:by=users,seed=2"]
)
def test_each_copy_of_a_job_has_the_line_of_that_job(cluster: Path, step: str) -> None:
    qbatch("transform", "c.swf", step, "--resources", "c.csv", "-o", "d.swf",
           "--resources-out", "e.csv", cwd=cluster)  # fmt: skip
    log = read_log(str(cluster / "d.swf"))
    read = read_resources(str(cluster / "e.csv"), log)
    # In this log, the number of processors identifies a job; the third has no line.
    asked = [None if of < 0 else read.requests[of] for of in read.of.tolist()]
    procs = log["procs_requested"].tolist()
    assert len(procs) > 4 or step.startswith("resample")
    for size, request in zip(procs, asked, strict=True):
        expected = {1: (1, 1), 2: (2, 0), 3: None, 4: (4, 4)}[size]
        got = None if request is None else (request.procs, request.resources.get("gpu", 0))
        assert got == expected


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("--resources-out", "e.csv"), 2, "goes with --resources"),
        (("--resources", "c.csv"), 2, "names no side file; name it with --resources-out"),
        (("--resources", "c.csv", "-o", "d.swf", "--resources-out", "c.csv"), 2, "used already"),
        (("--resources", "c.csv", "-o", "d.swf", "--resources-out", "d.swf"), 2, "used already"),
        (("--resources", "none.csv", "-o", "d.swf"), 3, "none.csv: No such file"),
        (("--resources", "bad.csv", "-o", "d.swf"), 3, "bad.csv: line 2: job 7 is not in"),
        (("--resources", "c.csv", "-o", "d.swf", "--resources-out", "no/e.csv"), 4, "no/e.csv"),
        (("--resources", "c.csv", "-o", ".", "--resources-out", "e.csv"), 4, "is a directory"),
    ],
)
def test_a_side_file_that_cannot_be_kept_leaves_nothing(
    cluster: Path, words: tuple[str, ...], code: int, error: str
) -> None:
    (cluster / "bad.csv").write_text("job,nodes\n7,1\n")
    before = sorted(cluster.iterdir())
    done = qbatch("transform", "c.swf", "take:first=2", *words, cwd=cluster, code=code)
    assert error in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert sorted(cluster.iterdir()) == before


def test_packed_jobs_have_no_side_file(cluster: Path) -> None:
    done = qbatch("transform", "packed", "--resources", "c.csv", "-o", "d.swf", cwd=cluster, code=2)
    assert "packed jobs have none" in done.stderr
