"""Runs that are kept: what comes back, when it does not, and what a study does with them."""

from pathlib import Path

import pytest

from qbatch.model.errors import InputError, OutputError
from qbatch.papers import origin2000_kept as kept_module
from qbatch.papers import origin2000_study as study_module
from qbatch.papers.origin2000_kept import KeptOrigin2000Runs, sources_hash
from qbatch.papers.origin2000_runs import POLICIES, Origin2000Case, Origin2000Figures
from qbatch.papers.origin2000_study import Origin2000Study, run_study
from qbatch.sweeps import code as general_module
from qbatch.sweeps.code import imported

STUDY = Origin2000Study(("1999-12",), (1, 2), ("LSF*", "EQ-5m/>50hr"), days=1, warmup_days=1)


@pytest.fixture(scope="module")
def found() -> list[Origin2000Figures]:
    return run_study(STUDY, workers=1)


def test_what_is_kept_comes_back_the_same(found: list[Origin2000Figures], tmp_path: Path) -> None:
    kept = KeptOrigin2000Runs(tmp_path / "runs")
    assert not kept.read([found[0].case])
    for one in found:
        kept.write(one)
    with pytest.raises(OutputError, match="another process is at work there"):
        KeptOrigin2000Runs(tmp_path / "runs")
    del kept
    again = KeptOrigin2000Runs(tmp_path / "runs")
    there = again.read(STUDY.cases())
    assert [there[case] for case in STUDY.cases()] == found
    assert not again.read([Origin2000Case("1999-12", 1, "LSF*", 1, 2)]), "another warm-up"
    assert not again.read([Origin2000Case("1999-12", 1, "LSF*", 2, 1)])
    assert again.read_count == len(found)


def test_a_study_runs_only_what_is_not_kept(
    found: list[Origin2000Figures], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptOrigin2000Runs(tmp_path)
    kept.write(found[0])
    kept.write(found[3])
    made: list[Origin2000Case] = []
    results = {one.case: one for one in found}
    monkeypatch.setattr(study_module, "simulate", lambda case: made.append(case) or results[case])
    assert run_study(STUDY, workers=1, kept=kept) == found
    assert made == [found[1].case, found[2].case]
    assert kept.read_count == 2
    made.clear()
    assert run_study(STUDY, workers=1, kept=kept) == found
    assert not made


def test_a_change_of_the_sources_makes_it_run_again_and_a_broken_store_is_said(
    found: list[Origin2000Figures], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptOrigin2000Runs(tmp_path)
    kept.write(found[0])
    with monkeypatch.context() as patch:
        patch.setattr(kept_module, "sources_hash", lambda _: "other sources")
        assert not kept.read([found[0].case])
    assert kept.read([found[0].case]) == {found[0].case: found[0]}
    kept.store.close()
    (tmp_path / "runs.sqlite").write_bytes(b"no database, " * 100)
    with pytest.raises(InputError, match=r"runs\.sqlite: is no store of runs"):
        KeptOrigin2000Runs(tmp_path)


def test_a_policy_depends_on_its_own_module_and_not_on_those_of_the_others() -> None:
    modules = imported({"qbatch.papers.origin2000_runs", "qbatch.policies.equispatial"})
    assert {
        "qbatch",
        "qbatch.policies.equispatial",
        "qbatch.engine.engine",
        "qbatch.workloads.origin2000.jobs",
    } <= modules
    assert not {"qbatch.policies.lsf", "qbatch.policies.priority", "qbatch.papers.origin2000_verdicts"} & modules
    assert "qbatch.planning.kernels.host_pass" in imported({"qbatch.policies.priority"})


def test_every_policy_has_sources_of_its_own() -> None:
    assert len({sources_hash(policy) for policy in POLICIES}) == len(POLICIES)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file/runs"):
        KeptOrigin2000Runs(tmp_path / "file" / "runs")


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
        found.add(sources_hash.__wrapped__("LSF*"))
    assert (len(found) == 1) is is_same
