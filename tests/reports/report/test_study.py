from __future__ import annotations

import pytest

from qbatch.model.errors import InputError, UsageError
from qbatch.reports.report.study import gather, with_baseline
from qbatch.results.result import write_result
from qbatch.results.run_words import short_name
from tests.reports.report.results import small_work, write_small
from tests.reports.samples import scheduled


def test_results_of_one_workload_are_put_together(tmp_path) -> None:
    work = small_work()
    write_result(tmp_path / "a", {"seed": 1}, [scheduled(work, "fcfs")])
    write_result(tmp_path / "b", {"seed": 1}, [scheduled(work, "easy")])
    study = gather([str(tmp_path / "a"), str(tmp_path / "b")])
    assert study.policies == ("fcfs", "easy")
    assert len(study.replicas) == 1
    assert study.first.paths == (str(tmp_path / "a"), str(tmp_path / "b"))


def test_other_seeds_and_logs_are_replicas_and_other_logs_are_noted(tmp_path) -> None:
    paths = [write_small(tmp_path / f"r{seed}", seed) for seed in (1, 2)]
    study = gather(paths)
    assert study.has_replicas
    assert any("2 different logs (sample-1.swf, sample-2.swf)" in note for note in study.notes)
    drawn = small_work()
    drawn = drawn.changed(estimate=drawn.estimate * 2)
    write_result(
        tmp_path / "again", {"seed": 9, "options": {"load": 1.0}}, [scheduled(drawn, "easy")]
    )
    same = gather([paths[0], str(tmp_path / "again")], policies=["easy"])
    assert same.has_replicas
    assert same.notes == ()


def test_a_policy_that_is_missing_in_a_replica_is_noted(tmp_path) -> None:
    first = write_small(tmp_path / "a", 1)
    write_result(
        tmp_path / "b", {"seed": 2, "options": {"load": 1.0}}, [scheduled(small_work(1), "easy")]
    )
    study = gather([first, str(tmp_path / "b")])
    assert any("b holds no job under fcfs, conservative" in note for note in study.notes)


def test_what_cannot_stand_in_one_table_is_refused(tmp_path) -> None:
    first = write_small(tmp_path / "a", 1)
    with pytest.raises(InputError, match=r"is in .*a too; leave one of the two out"):
        gather([first, first])
    with pytest.raises(InputError, match=r"was run with load = 1.2, but .*a with 1.0"):
        gather([first, write_small(tmp_path / "b", 2, options={"load": 1.2})])
    with pytest.raises(InputError, match="a machine of 99 processors"):
        gather([first, write_small(tmp_path / "c", 3, procs_total=99)])
    with pytest.raises(InputError, match=r"same schedules as .*a, and counted twice"):
        gather([first, write_small(tmp_path / "d", 1, seed=9)])
    with pytest.raises(InputError, match="it does not contain its options"):
        gather([first, write_small(tmp_path / "e", 2, options={})])
    with pytest.raises(UsageError, match="did you mean 'easy'"):
        gather([first], policies=["eassy"])
    with pytest.raises(UsageError, match="--baseline 'sjf'"):
        with_baseline(gather([first]), "sjf")


def test_the_baseline_stands_first_everywhere(tmp_path) -> None:
    study = with_baseline(gather([write_small(tmp_path / "a", 1)]), "easy")
    assert study.policies == ("easy", "fcfs", "conservative")
    assert study.first.result.policies == study.policies
    assert with_baseline(study, None) is study
    assert gather(
        [write_small(tmp_path / "a", 1)], policies=["conservative"]
    ).first.result.policies == ("conservative",)


def test_bare_job_rows_make_a_study_too(tmp_path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("job_id,submit,start,end,procs\n1,0,5,10,2\n2,1,5,20,1\n")
    study = gather([str(path)])
    assert study.policies == ("rows",)
    assert study.first.metrics("rows") == {}


def test_bare_job_rows_of_the_same_jobs_are_one_workload(tmp_path) -> None:
    for name, start, last in (("easy", 3, 1), ("fcfs", 5, 1), ("other", 5, 2)):
        text = f"job_id,submit,start,end,procs\n1,0,{start},9,2\n2,{last},{start},9,1\n"
        (tmp_path / f"{name}.csv").write_text(text)
    study = gather([str(tmp_path / "easy.csv"), str(tmp_path / "fcfs.csv")])
    assert (study.policies, len(study.replicas)) == (("easy", "fcfs"), 1)
    assert gather([str(tmp_path / "easy.csv"), str(tmp_path / "other.csv")]).has_replicas


def test_a_short_name_is_the_last_part() -> None:
    assert [short_name(name) for name in ("/a/b.swf", "b.swf", "c:\\d\\e.swf", "a/")] == [
        "b.swf",
        "b.swf",
        "e.swf",
        "a",
    ]
