"""``qbatch.compare`` gives the record of ``qbatch compare``, from files and from results in
memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import qbatch as qb
from tests.library.commands import DEMO, ROOT, TINY, document, qbatch


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    for seed in (1, 2, 3, 4):
        result = qb.replay(
            ROOT / DEMO, ["easy", "conservative"], estimates="f:3", seed=seed, first=600
        )
        result.save(folder / f"r{seed}")
    return folder


def test_the_record_is_that_of_the_command(kept: Path) -> None:
    r1, others = str(kept / "r1"), [str(kept / f"r{seed}") for seed in (2, 3, 4)]
    cases: list[tuple[list[str], dict[str, Any]]] = [
        ([r1], {}),
        ([f"{r1}:easy", f"{r1}:conservative"], {}),
        (
            [f"{r1}:easy", f"{others[0]}:easy", "--by", "size", "--confidence", "0.9"],
            {"by": ["size"], "confidence": 0.9},
        ),
        ([r1, *(word for path in others for word in ("--with", path))], {"replicas": others}),
        ([r1, "--practical", "0.2", "--seed", "4"], {"practical": 0.2, "seed": 4}),
    ]
    for words, arguments in cases:
        named = [word for word in words[:2] if not word.startswith("--")]
        ours = qb.compare(*named, **arguments)
        assert ours.document == document("compare", *words), words


def test_results_in_memory_compare_as_their_files_do(kept: Path) -> None:
    read = [qb.read_result(kept / f"r{seed}") for seed in (1, 2, 3, 4)]
    by_name = qb.compare(kept / "r1", replicas=[kept / f"r{seed}" for seed in (2, 3, 4)])
    assert qb.compare(read[0], replicas=read[1:]).document == by_name.document
    made = [
        qb.replay(ROOT / DEMO, ["easy", "conservative"], estimates="f:3", seed=seed, first=600)
        for seed in (1, 2, 3, 4)
    ]
    found = qb.compare(made[0], replicas=made[1:]).document
    for side in ("a", "b"):
        assert found[side].pop("result").startswith(f"{ROOT / DEMO}:")
        by_name.document[side].pop("result")
    assert found == by_name.document
    pair = qb.compare(made[0]["easy"], made[0]["conservative"])
    assert pair.document == qb.compare(made[0]).document


def test_the_tables_hold_the_records(kept: Path) -> None:
    found = qb.compare(kept / "r1")
    rows = found.table.to_pylist()
    assert (
        [row["name"] for row in rows]
        == list(found.findings)
        == [each["name"] for each in found.document["metrics"]]
    )
    for row, record in zip(rows, found.document["metrics"], strict=True):
        assert all(row[key] == record[key] for key in row)
    parts = found.parts.to_pylist()
    assert {row["by"] for row in parts} == {"class", "month"}
    records = [record for records in found.document["parts"].values() for record in records]
    assert [(row["label"], row["p_holm"]) for row in parts] == [
        (each["label"], each["p_holm"]) for each in records
    ]
    assert found.sentences[0] == rows[0]["sentence"]
    assert found.sentences[0].startswith("Mean wait: ")


def test_it_shows_itself(kept: Path) -> None:
    found = qb.compare(kept / "r1")
    assert repr(found).startswith(
        "<Comparison of conservative with easy, 600 common jobs: wait_mean_s "
    )
    assert "\n" not in repr(found)
    page = found._repr_html_()
    assert "<th>easy</th><th>conservative</th>" in page
    assert page.count("<tr>") == 1 + len(found.findings)


def test_what_really_happened_is_a_side_too(tmp_path: Path) -> None:
    qbatch("replay", DEMO, "-p", "easy", "--swf", str(tmp_path / "done.swf"), "--quiet")
    found = qb.compare(tmp_path / "done.swf", qb.replay(DEMO, "easy"))
    assert set(found.findings.values()) == {"equal"}
    with pytest.raises(qb.UsageError, match="is one schedule, that of the log; name B too"):
        qb.compare(tmp_path / "done.swf")


def test_bare_job_rows_are_given_their_machine(tmp_path: Path) -> None:
    for policy in ("easy", "fcfs"):
        qbatch(
            "replay",
            DEMO,
            "-p",
            policy,
            "--first",
            "300",
            "--jobs",
            str(tmp_path / f"{policy}.csv"),
            "--quiet",
        )
    a, b = tmp_path / "easy.csv", tmp_path / "fcfs.csv"
    assert qb.compare(a, b, procs=128).document == document(
        "compare", str(a), str(b), "--procs", "128"
    )
    assert any("procs=N" in note for note in qb.compare(a, b).notes)


def test_mistakes_are_reported_in_the_words_of_the_function(kept: Path) -> None:
    result = qb.replay(TINY, ["fcfs", "easy", "conservative"])
    for arguments, words in (
        (lambda: qb.compare(result), r"tiny\.txt: holds fcfs, easy, conservative; name B too"),
        (lambda: qb.compare(result["easy"], result), "holds 3 policies; name one of"),
        (
            lambda: qb.compare(kept / "r1", by=["mnth"]),
            "^by 'mnth': use one of .*did you mean 'month'",
        ),
        (lambda: qb.compare(kept / "r1", confidence=2), "^confidence 2: is not between 0 and 1"),
        (lambda: qb.compare(kept / "r1", practical=-1), "^practical -1: should be a share"),
        (
            lambda: qb.compare(kept / "r1", replicas=[kept / "r1"]),
            "^replicas .*r1: is compared already",
        ),
        (
            lambda: qb.compare(kept / "r1", logs_differ=True),
            "^logs_differ needs replicas: name them with replicas=DIR",
        ),
        (lambda: qb.compare(kept / "r1", procs=4), "^procs is for bare job rows"),
        (
            lambda: qb.compare(result.only("fcfs", "easy"), replicas=[result]),
            r"tiny\.txt: holds the same schedules as .*leave one out",
        ),
    ):
        with pytest.raises(qb.QbatchError, match=words) as caught:
            arguments()
        assert "--" not in str(caught.value)
    with pytest.raises(qb.InputError, match="compare two schedules of one log"):
        qb.compare(result["easy"], qb.replay(qb.generate("plain", jobs=50, procs=64), "easy"))


def test_a_replica_in_memory_is_not_the_first_result_again() -> None:
    result = qb.replay(TINY, ["fcfs", "easy"])
    with pytest.raises(qb.UsageError, match="is compared already"):
        qb.compare(result, replicas=[result])
