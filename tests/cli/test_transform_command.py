"""``qbatch transform`` and ``qbatch replay --deadlines``, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
