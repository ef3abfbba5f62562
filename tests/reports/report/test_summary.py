from __future__ import annotations

import numpy as np
import pytest

from qbatch.metrics import METRICS, breakdown, measure
from qbatch.metrics.interval import SAME
from qbatch.metrics.table import words_of
from qbatch.reports.report.page import render
from qbatch.reports.report.study import gather
from qbatch.reports.report.summary import SHOWN, all_metrics, parts, promises, summary
from qbatch.results.result import write_result
from tests.reports.report.results import small_work, unpromised, write_small
from tests.reports.samples import by_hand, scheduled, workload

S = 1_000_000


def test_the_summary_shows_what_is_measured(tmp_path) -> None:
    study = gather([write_small(tmp_path / "a")])
    rows = {row.metric.name: row for row in summary(study, 0.95)}
    for place, policy in enumerate(("fcfs", "easy", "conservative")):
        truth = measure(scheduled(small_work(), policy), costly=False)
        for name in ("wait_mean_s", "bounded_slowdown_max", "utilisation_makespan"):
            assert rows[name].cells[place].value == pytest.approx(truth[name])
    wait = rows["wait_mean_s"].cells[0]
    assert " to " in wait.bounds
    assert rows["wait_max_s"].cells[0].bounds == ""


def test_metrics_of_the_result_win_and_are_not_computed_again(tmp_path) -> None:
    run = {"policy": "easy", "metrics": {"wait_mean_s": 42.0, "loss_of_capacity": 0.125}}
    write_result(tmp_path / "a", {"results": [run]}, [scheduled(small_work(), "easy")])
    study = gather([str(tmp_path / "a")])
    rows = {row.metric.name: row for row in summary(study, 0.95)}
    assert rows["wait_mean_s"].cells[0].value == 42
    assert rows["loss_of_capacity"].cells[0].text == "12.50 %"
    assert "wait_max_s" not in rows, "a metric that the result does not have is left out"


def test_intervals_over_replicas_are_student_s(tmp_path) -> None:
    study = gather([write_small(tmp_path / f"r{seed}", seed) for seed in (1, 2, 3)])
    values = all_metrics(study)[1]["wait_mean_s"]
    assert len(values) == 3
    cell = next(row for row in summary(study, 0.95) if row.metric.name == "makespan_s").cells[1]
    assert " to " in cell.bounds, "over replicas also the makespan has an interval"
    assert next(row for row in summary(study, 0.95) if row.metric.name == "wait_mean_s").cells[
        1
    ].value == pytest.approx(np.mean(values))


def test_every_metric_has_words() -> None:
    words = [words_of(metric.name) for metric in METRICS]
    assert len(set(words)) == len(METRICS)
    assert words_of("wait_max_s") == "Longest wait"
    assert words_of("bounded_slowdown_max") == "Highest bounded slowdown"
    assert set(SHOWN) <= {metric.name for metric in METRICS}


@pytest.mark.parametrize("key", ["class", "size", "runtime", "month"])
def test_parts_are_those_of_the_breakdown(tmp_path, key) -> None:
    study = gather([write_small(tmp_path / "a")])
    found = parts(study, key)
    truth = {group.label: group for group in breakdown(scheduled(small_work(), "easy"), key)}
    assert {part.label for part in found} == set(truth)
    for part in found:
        assert part.jobs == truth[part.label].jobs
        assert part.values["wait_mean_s"][1] == pytest.approx(
            truth[part.label].metrics["wait_mean_s"]
        )


def test_each_promise_is_kept_or_moved_earlier_or_broken() -> None:
    work = workload([0] * 5, [1] * 5, [S] * 5, [S] * 5)
    #        kept, kept and early, moved, moved then broken, without
    first = [10 * S, 10 * S, 10 * S, 10 * S, -1]
    last = [10 * S, 10 * S, 6 * S, 6 * S, -1]
    start = [10 * S, 4 * S, 6 * S, 7 * S, 3 * S]
    found = promises(by_hand(work, start, promise=last, first_promise=first))
    assert (found.jobs, found.promised) == (5, 4)
    assert (found.kept, found.earlier, found.broken) == (2, 1, 1)
    assert found.gain_mean_s == pytest.approx((0 + 6 + 4) / 3)


def test_a_promise_that_was_taken_back_is_broken_although_a_better_one_followed() -> None:
    work = workload([0] * 2, [1] * 2, [S] * 2, [S] * 2)
    done = by_hand(
        work, [4 * S, 4 * S], promise=[4 * S, 4 * S], first_promise=[9 * S, 9 * S], broken=[1, 0]
    )
    found = promises(done)
    assert (found.kept, found.earlier, found.broken) == (0, 1, 1)


def test_a_policy_without_promises_has_none(tmp_path) -> None:
    study = gather([unpromised(tmp_path / "a")])
    found = promises(study.first.result.schedules[0])
    assert (found.promised, found.gain_mean_s) == (0, None)


def test_replicas_that_cannot_differ_have_a_dash(tmp_path) -> None:
    paths = []
    for seed in (1, 2):
        work = small_work(1)
        easy = (
            scheduled(work, "easy")
            if seed == 1
            else by_hand(work, scheduled(work, "easy").start + 3600 * S, "easy")
        )
        write_result(
            tmp_path / str(seed),
            {"seed": seed, "options": {"load": 1.0}},
            [scheduled(work, "fcfs"), easy],
        )
        paths.append(str(tmp_path / str(seed)))
    fcfs, easy = next(
        row for row in summary(gather(paths), 0.95) if row.metric.name == "wait_mean_s"
    ).cells
    assert fcfs.bounds == "\N{EN DASH}"
    assert " to " in easy.bounds
    assert f"a dash: {SAME}." in render(gather(paths))
