"""``qbatch.replay`` gives what ``qbatch replay`` gives, to the last digit, and refuses what it
refuses, in its own words."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qbatch as qb
from qbatch.model.actions import Start
from tests.library.commands import DEMO, TINY, document, qbatch

OPTIONS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "nothing": ([], {}),
    "policies": (["-p", "hybrid:depth=4", "-p", "easy"], {"policies": ["hybrid:depth=4", "easy"]}),
    "one policy": (["-p", "sjf-backfill"], {"policies": "sjf-backfill"}),
    "processors": (["--procs", "200"], {"procs": 200}),
    "machine": (["--procs", "200"], {"machine": 200}),
    "perfect": (["--estimates", "perfect"], {"estimates": "perfect"}),
    "drawn": (["--estimates", "f:3", "--seed", "11"], {"estimates": "f:3", "seed": 11}),
    "no kill": (["--no-kill", "--load", "1.3"], {"kill": False, "load": 1.3}),
    "window": (["--from", "86400", "--to", "900000"], {"since": 86400, "before": 900000}),
    "dates": (["--from", "2025-01-02", "--first", "300"], {"since": "2025-01-02", "first": 300}),
    "warm-up": (["--warmup", "7d", "--first", "900"], {"warmup": "7d", "first": 900}),
    "warm-up in seconds": (
        ["--warmup", "90000", "--first", "900"],
        {"warmup": 90000, "first": 900},
    ),
    "breakdown": (
        ["--by", "user", "--by", "size", "--first", "500"],
        {"by": ["user", "size"], "first": 500},
    ),
    "engine": (
        ["--driver", "engine", "-p", "easy", "--first", "300"],
        {"driver": "engine", "policies": "easy", "first": 300},
    ),
    "users wait": (
        ["--closed", "-p", "easy", "--first", "300"],
        {"closed": True, "policies": "easy", "first": 300},
    ),
    "audit": (["--audit", "--first", "300"], {"audit": True, "first": 300}),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_record_is_that_of_the_command(name: str) -> None:
    words, arguments = OPTIONS[name]
    printed = document("replay", DEMO, *words, "--quiet")
    ours = dict(qb.replay(DEMO, **arguments).document)
    assert printed.pop("command")[:2] == ["qbatch", "replay"]
    assert ours.pop("command")[:2] == ["qbatch.replay", DEMO]
    assert ours == printed
    assert ours["results"][0]["metrics"]["jobs"] > 0


def test_hosts_classes_and_memory(tmp_path: Path) -> None:
    month = qb.generate("origin2000", month="2000-01")
    qb.write_log(month, tmp_path / "month.swf")
    words = [
        "replay",
        str(tmp_path / "month.swf"),
        "--machine",
        "origin2000",
        "--first",
        "150",
        "-p",
        "lxfw-backfill",
    ]
    words += ["-p", "lsf"]
    printed = document(*words, "--quiet")
    ours = qb.replay(
        tmp_path / "month.swf", ["lxfw-backfill", "lsf"], machine="origin2000", first=150
    )
    again = qb.replay(month, ["lxfw-backfill", "lsf"], machine=qb.machine("origin2000"), first=150)
    assert [each["metrics"] for each in printed["results"]] == list(ours.metrics.values())
    assert dict(again.metrics) == dict(ours.metrics)
    notes = [
        line.removeprefix("note: ")
        for line in qbatch(*words).stderr.splitlines()
        if line.startswith("note: ")
    ]
    for theirs, words_of_ours in (
        (" (--skipped FILE lists them)", ""),
        ("--no-kill", "kill=False"),
    ):
        notes = [note.replace(theirs, words_of_ours) for note in notes]
    assert ours.notes == tuple(notes)
    assert ours.notes


def test_deadlines_come_with_the_log_or_from_a_file(tmp_path: Path) -> None:
    steps = ["take:first=400", "deadlines:stringency=0.2,share=0.8"]
    made = qb.transform(DEMO, *steps, seed=5)
    qb.write_log(made, tmp_path / "a.swf", deadlines=tmp_path / "a.csv")
    qbatch(
        "transform",
        DEMO,
        *steps,
        "--seed",
        "5",
        "-o",
        str(tmp_path / "b.swf"),
        "--deadlines",
        str(tmp_path / "b.csv"),
    )
    for end in ("swf", "csv"):
        assert (tmp_path / f"a.{end}").read_bytes() == (tmp_path / f"b.{end}").read_bytes()
    printed = document(
        "replay",
        str(tmp_path / "b.swf"),
        "--deadlines",
        str(tmp_path / "b.csv"),
        "-p",
        "qops",
        "--quiet",
    )
    for log, deadlines in ((made, None), (tmp_path / "a.swf", tmp_path / "a.csv")):
        ours = qb.replay(log, "qops", deadlines=deadlines)
        assert ours.metrics["qops"] == printed["results"][0]["metrics"]
        assert ours.document["deadlines"] == printed["deadlines"] > 0
    with pytest.raises(
        qb.UsageError, match=r"deadlines .*a\.csv: the log has deadlines of its own"
    ):
        qb.replay(made, "qops", deadlines=tmp_path / "a.csv")
    with pytest.raises(qb.UsageError, match="add deadlines=FILE"):
        qb.write_log(made, tmp_path / "c.swf")
    assert not (tmp_path / "c.swf").exists()


def test_resources_come_from_a_side_file(tmp_path: Path) -> None:
    log, side, machine = (str(tmp_path / f"c{end}") for end in (".swf", ".csv", ".toml"))
    qbatch("generate", "cluster", "--days", "1", "--nodes", "8", "--load", "0.3", "-o", log,
           "--resources", side, "--machine-file", machine)  # fmt: skip
    printed = document(
        "replay", log, "--machine", machine, "--resources", side, "-p", "easy", "--quiet"
    )
    ours = qb.replay(qb.read_log(log), "easy", machine=machine, resources=Path(side))
    assert ours.metrics["easy"] == printed["results"][0]["metrics"]
    assert ours.document["resources"] == printed["resources"]
    assert qb.replay(log, "easy", machine=machine).metrics["easy"] != ours.metrics["easy"]
    with pytest.raises(qb.UsageError, match="machine file with schema = 2"):
        qb.replay(log, "easy", resources=side)
    with pytest.raises(qb.InputError, match=r"none\.csv: No such file"):
        qb.replay(log, "easy", machine=machine, resources=tmp_path / "none.csv")


class Mine:
    """The widest job that fits."""

    name = "mine"

    def __init__(self, most: int = 1_000_000) -> None:
        self.most = most

    def decide(self, view):
        free = view.free_now()
        for job in sorted(view.that_fit(), key=lambda job: (-job.procs, job.row)):
            if job.procs <= self.most and free.take(job):
                yield Start(job.row)


def test_a_policy_is_a_name_a_class_or_an_object() -> None:
    result = qb.replay(TINY, [Mine, "easy"], audit=True)
    assert result.policies == ("mine", "easy")
    assert qb.replay(TINY, Mine(), audit=True)["mine"] == result["mine"]
    assert qb.replay(TINY, Mine)["mine"] == result["mine"]
    assert qb.replay(TINY, (qb.policy("easy"),))["easy"] == result["easy"]
    assert qb.policy(chosen := Mine(3)) is chosen


def test_the_same_input_gives_the_same_result() -> None:
    log = qb.generate("lublin", jobs=300, seed=3)
    first, second = (qb.replay(log, estimates="f:4", seed=9) for _ in range(2))
    assert first == second
    assert first.document == second.document
    assert first != qb.replay(log, estimates="f:4", seed=10)


class Needy:
    name = "needy"

    def __init__(self, what: int) -> None: ...

    def decide(self, view): ...


class Greedy:
    name = "greedy"

    def decide(self, view):
        return [Start(row) for row in view.queue.tolist()]


MISTAKES: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "an unknown policy": (
        {"policies": "esay"},
        qb.UsageError,
        "there is no policy 'esay'; did you mean 'easy'",
    ),
    "a policy twice": (
        {"policies": ["easy", "easy"]},
        qb.UsageError,
        "policies easy: the policy occurs twice",
    ),
    "no policy": ({"policies": []}, qb.UsageError, "none is named"),
    "no policy at all": (
        {"policies": [dict]},
        qb.UsageError,
        r"policy dict: has no method decide\(view\)",
    ),
    "a class that wants more": (
        {"policies": Needy},
        qb.UsageError,
        "policy Needy: cannot be made: .*'what'",
    ),
    "a policy that oversteps": ({"policies": Greedy, "procs": 8}, qb.DecisionError, "row"),
    "an instant": (
        {"since": "soon"},
        qb.UsageError,
        "^since 'soon': neither seconds of the log nor an ISO time",
    ),
    "a load": ({"load": 0}, qb.UsageError, "^load 0: use a factor from"),
    "a warm-up": ({"warmup": "-3"}, qb.UsageError, "^warmup '-3': use seconds"),
    "estimates": (
        {"estimates": "f:0"},
        qb.UsageError,
        "^estimates 'f:0': N=0 is not a number from 1",
    ),
    "a load in words": ({"load": "high"}, qb.UsageError, "^load 'high': is not a number"),
    "no policies": (
        {"policies": None},
        qb.UsageError,
        r"policy NoneType: has no method decide\(view\)",
    ),
    "a seed": ({"seed": -1}, qb.UsageError, "^seed -1: use a whole number from 0"),
    "a count": ({"first": 0}, qb.UsageError, "^first 0: use a whole number from 1"),
    "a driver": (
        {"driver": "compield"},
        qb.UsageError,
        "driver 'compield': use one of auto, compiled, engine; did you mean",
    ),
    "a breakdown": ({"by": ["mnth"]}, qb.UsageError, "by 'mnth': .*did you mean 'month'"),
    "two machines": (
        {"procs": 3, "machine": "origin2000"},
        qb.UsageError,
        "procs and machine both set",
    ),
    "no machine": (
        {"machine": "missing.toml"},
        qb.InputError,
        "^missing.toml: machine file cannot be read",
    ),
    "no processors": ({"procs": 0}, qb.UsageError, "^procs 0"),
    "no processors of a machine": ({"machine": 0}, qb.UsageError, "^machine 0: use 1 to"),
    "nothing left": ({"since": 10**9}, qb.InputError, "no job in it can run"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_in_the_words_of_the_function(name: str) -> None:
    arguments, kind, words = MISTAKES[name]
    with pytest.raises(kind, match=words) as caught:
        qb.replay(TINY, **arguments)
    text = str(caught.value)
    assert isinstance(caught.value, qb.QbatchError)
    assert "\n" not in text
    assert "--" not in text


def test_a_log_that_is_not_there_is_an_input_error() -> None:
    with pytest.raises(qb.InputError, match=r"missing\.swf"):
        qb.replay("missing.swf")


def test_for_a_log_that_does_not_say_its_machine_the_argument_is_named(tmp_path: Path) -> None:
    (tmp_path / "bare.txt").write_text("0 10 2 20\n5 10 1 20\n", encoding="utf-8")
    with pytest.raises(qb.InputError, match="say how many with procs=N"):
        qb.replay(tmp_path / "bare.txt")
    assert qb.replay(tmp_path / "bare.txt", "easy", procs=2).metrics["easy"]["jobs"] == 2


def test_a_log_read_once_is_not_changed_by_replays() -> None:
    log = qb.read_log(DEMO)
    before = {name: np.array(column) for name, column in log.columns.items()}
    qb.replay(log, "easy", load=1.2, kill=False)
    assert all(np.array_equal(log[name], column) for name, column in before.items())
    assert repr(log) == "<Log traces/demo-128.swf: 2,000 jobs for 128 processors, 23.5 days>"


def test_progress_is_silent_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    qb.replay(TINY, "easy", progress=True)
    assert capsys.readouterr() == ("", "")


def test_progress_on_a_page_is_one_line_that_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    assert qb.replay(DEMO, "easy", driver="engine", progress=True) == qb.replay(DEMO, "easy")
    out, said = capsys.readouterr()
    parts = said.split("\r")
    assert out == ""
    assert parts[1] == "easy: 0 % of 2,000 jobs"
    assert parts[-1].rstrip() == "easy: 2,000 jobs"
    assert parts[2:-1]
    assert all(0 < int(part.split()[1]) <= 100 for part in parts[2:-1])
