"""The harness of the papers: runs that are kept, when they are made again, and what the harness
prints of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from qbatch.model.errors import InputError, OutputError, QbatchError
from qbatch.papers.harness import CachedRuns, Runner, sources_hash
from qbatch.papers.origin2000 import POLICIES, Origin2000Case, Origin2000Figures, Origin2000Study
from qbatch.papers.origin2000_claims import RUNS
from qbatch.sweeps import code as general_module
from qbatch.sweeps.code import imported

STUDY = Origin2000Study(("1999-12",), (1, 2), ("LSF*", "EQ-5m/>50hr"), days=1, warmup_days=1)


@pytest.fixture(scope="module")
def found() -> list[Origin2000Figures]:
    return Runner(workers=1).runs(RUNS, STUDY.cases())


def test_what_is_kept_comes_back_the_same(found: list[Origin2000Figures], tmp_path: Path) -> None:
    kept = CachedRuns(RUNS, tmp_path / "runs")
    assert not kept.read([found[0].case])
    for one in found:
        kept.write(one)
    with pytest.raises(OutputError, match="another process is at work there"):
        CachedRuns(RUNS, tmp_path / "runs")
    del kept
    again = CachedRuns(RUNS, tmp_path / "runs")
    there = again.read(STUDY.cases())
    assert [there[case] for case in STUDY.cases()] == found
    assert not again.read([Origin2000Case("1999-12", 1, "LSF*", 1, 2)]), "another warm-up"
    assert not again.read([Origin2000Case("1999-12", 1, "LSF*", 2, 1)])


def test_a_study_runs_only_what_is_not_kept(found: list[Origin2000Figures], tmp_path: Path) -> None:
    kept = CachedRuns(RUNS, tmp_path)
    kept.write(found[0])
    kept.write(found[3])
    del kept
    made: list[Origin2000Case] = []
    results = {one.case: one for one in found}
    counted = replace(RUNS, simulate=lambda case: made.append(case) or results[case])
    calls: list[int] = []
    said: list[str] = []
    runner = Runner(lambda what, done, of: calls.append(done), 1, tmp_path, said.append)
    assert runner.runs(counted, STUDY.cases()) == found
    assert made == [found[1].case, found[2].case]
    assert calls == [2, 3, 4]
    assert runner.runs(counted, STUDY.cases()) == found
    assert len(made) == 2
    assert said == [
        f"{count} of 4 simulations were there already, in {tmp_path}" for count in (2, 4)
    ]


def test_a_change_of_the_sources_makes_it_run_again_and_a_broken_store_is_said(
    found: list[Origin2000Figures], tmp_path: Path
) -> None:
    kept = CachedRuns(RUNS, tmp_path)
    kept.write(found[0])
    kept.store.close()
    other = CachedRuns(replace(RUNS, sources=lambda _: "other sources"), tmp_path)
    assert not other.read([found[0].case])
    other.store.close()
    kept = CachedRuns(RUNS, tmp_path)
    assert kept.read([found[0].case]) == {found[0].case: found[0]}
    kept.store.close()
    (tmp_path / "runs.sqlite").write_bytes(b"no database, " * 100)
    with pytest.raises(InputError, match=r"runs\.sqlite: is no store of runs"):
        CachedRuns(RUNS, tmp_path)


def test_a_policy_depends_on_its_own_module_and_not_on_those_of_the_others() -> None:
    modules = imported({"qbatch.papers.origin2000", "qbatch.policies.equispatial"})
    assert {
        "qbatch",
        "qbatch.policies.equispatial",
        "qbatch.engine.engine",
        "qbatch.workloads.origin2000.jobs",
    } <= modules
    others = {
        "qbatch.policies.lsf",
        "qbatch.policies.priority",
        "qbatch.papers.origin2000_claims",
        "qbatch.papers.harness",
    }
    assert not others & modules
    assert "qbatch.planning.kernels.host_pass" in imported({"qbatch.policies.priority"})


def test_every_policy_has_sources_of_its_own() -> None:
    cases = [Origin2000Case("1999-12", 1, policy) for policy in POLICIES]
    assert len({RUNS.sources(case) for case in cases}) == len(POLICIES)
    assert RUNS.sources(cases[0]) == RUNS.sources(replace(cases[0], seed=2))


def test_what_is_made_is_in_the_order_of_its_cases_and_reported() -> None:
    calls: list[tuple[str, int, int]] = []
    runner = Runner(lambda *one: calls.append(one), workers=2)
    assert runner.made("halves", half_of, [6, 4, 2]) == [3, 2, 1]
    assert calls == [("halves", done, 3) for done in range(4)]


def test_a_study_that_fails_says_at_which_case() -> None:
    with pytest.raises(QbatchError, match="5: ValueError: 5 is odd"):
        Runner(workers=1).made("halves", half_of, [5])


def half_of(number: int) -> int:
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number // 2


def test_a_folder_that_cannot_be_made_is_said_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file/runs"):
        Runner(folder=tmp_path / "file" / "runs").runs(
            replace(RUNS, simulate=pytest.fail), STUDY.cases()
        )


@pytest.mark.parametrize(
    ("text", "is_same"),
    [
        ('"""Other words."""\n# and a remark\ndef f():\n    """Say."""\n    return 1\n', True),
        ('"""Words."""\ndef f():\n    return 2\n', False),
    ],
)
def test_words_about_the_sources_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, is_same: bool
) -> None:
    monkeypatch.setattr(general_module, "_ROOT", tmp_path)
    monkeypatch.setattr(general_module, "imported", lambda _: {"qbatch.one"})
    found = set()
    for each in ('"""Words."""\ndef f():\n    return 1\n', text):
        (tmp_path / "one.py").write_text(each)
        general_module._code.cache_clear()
        found.add(sources_hash.__wrapped__("qbatch.one", "lsf"))
    assert (len(found) == 1) is is_same
