"""Points, intervals and differences of a sweep, held against sums one by one."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import pytest

from qbatch.metrics.interval import SAME, t_quantile
from qbatch.model.errors import UsageError
from qbatch.sweeps.summary import differences, points, record
from qbatch.sweeps.table import SweepTable, read_sweep
from tests.sweeps.samples import swept, write_sample
from tests.sweeps.test_sweep import rows_of


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> SweepTable:
    folder = tmp_path_factory.mktemp("sweep")
    log = write_sample(folder / "log.swf")
    axes = {
        "load": [0.8, 1.0],
        "seed": "1:5",
        "estimates": ["log", "f:3"],
        "policy": ["fcfs", "easy", "conservative"],
    }
    swept(folder / "out", log, **axes)
    return read_sweep(folder / "out")


def test_points_are_those_of_the_grid_and_means_those_of_their_runs(sweep: SweepTable) -> None:
    found = points(sweep, ["wait_mean", "bounded_slowdown_mean"])
    rows = rows_of(sweep.folder)
    wanted: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for row in rows:
        wanted.setdefault((row["load"], row["estimates"], row["policy"]), []).append(row)
    assert [
        (point.at["load"], point.at["estimates"], point.at["policy"]) for point in found
    ] == list(wanted)
    for point, runs in zip(found, wanted.values(), strict=True):
        assert point.seeds == tuple(run["seed"] for run in runs)
        values = [float(str(run["wait_mean_s"])) for run in runs]
        mean = point.mean("wait_mean_s")
        assert mean.value == pytest.approx(statistics.fmean(values), rel=1e-12)
        if len(values) == 1:
            assert (mean.low, mean.high, mean.reason) == (None, None, None)
            continue
        if point.at["policy"] == "fcfs":
            assert (mean.low, mean.high, mean.reason) == (None, None, SAME)
            continue
        half = (
            t_quantile(0.975, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
        )
        assert mean.low == pytest.approx(max(statistics.fmean(values) - half, 0), rel=1e-9)
        assert mean.high == pytest.approx(statistics.fmean(values) + half, rel=1e-9)


def test_replicas_that_cannot_differ_have_a_reason_and_no_interval(sweep: SweepTable) -> None:
    """FCFS looks at no estimate, so drawing them moves nothing; EASY and what differs from FCFS
    have intervals."""
    document = record(sweep, ["wait_mean"])
    drawn = [point for point in document["points"] if point["at"]["estimates"] == "f:3"]
    assert {point["replicas"] for point in drawn} == {5}
    for point in drawn:
        mean = point["metrics"]["wait_mean_s"]
        if point["at"]["policy"] == "fcfs":
            assert (mean["low"], mean["high"], mean["reason"]) == (None, None, SAME)
        else:
            assert mean["low"] < mean["mean"] < mean["high"]
            assert mean["reason"] is None
    assert {one["reason"] for one in document["against"] if one["at"]["estimates"] == "f:3"} == {
        None
    }
    found = [
        point
        for point in points(sweep, ["wait_mean"])
        if point.at["policy"] == "fcfs" and point.replicas == 5
    ]
    late = replace(
        found[0],
        at=found[0].at | {"policy": "late"},
        values={"wait_mean_s": found[0].values["wait_mean_s"] + 60},
    )
    (one,) = differences([found[0], late], "wait_mean_s", "fcfs")
    assert (one.difference, one.low, one.high, one.finding, one.reason) == (
        pytest.approx(60),
        None,
        None,
        "unknown",
        SAME,
    )


def test_differences_are_in_pairs_of_one_seed(sweep: SweepTable) -> None:
    found = points(sweep, ["wait_mean_s"], {"estimates": ["f:3"], "load": ["1.0"]})
    by_policy = {point.at["policy"]: point.values["wait_mean_s"] for point in found}
    assert set(by_policy) == {"fcfs", "easy", "conservative"}
    for one in differences(found, "wait_mean_s", "fcfs"):
        pairs = (by_policy[one.policy] - by_policy["fcfs"]).tolist()
        assert one.pairs == 5
        assert one.difference == pytest.approx(statistics.fmean(pairs))
        half = t_quantile(0.975, 4) * statistics.stdev(pairs) / math.sqrt(5)
        assert one.high == pytest.approx(statistics.fmean(pairs) + half)
        assert one.finding == ("better" if one.high is not None and one.high < 0 else one.finding)
    assert {one.policy: one.finding for one in differences(found, "wait_mean_s", "fcfs")}[
        "easy"
    ] == "better"


def test_without_replicas_nothing_is_called_real(sweep: SweepTable) -> None:
    found = points(sweep, ["wait_mean_s"], {"estimates": ["log"]})
    assert {one.finding for one in differences(found, "wait_mean_s", "fcfs")} == {"unknown"}


def test_the_record_has_every_point_and_every_difference(sweep: SweepTable) -> None:
    document = record(sweep, ["wait_mean"], baseline="easy")
    assert document["schema"] == "qbatch.sweep/1"
    assert len(document["points"]) == 12
    assert len(document["against"]) == 8
    assert {one["at"]["policy"] for one in document["against"]} == {"fcfs", "conservative"}
    assert document["points"][0]["metrics"].keys() == {"wait_mean_s"}


@pytest.mark.parametrize(
    ("metric", "where", "said"),
    [
        ("wait_men_s", {}, "no metric 'wait_men_s'; did you mean 'wait_mean_s'"),
        ("wait_mean_s", {"lod": ["1"]}, "no axis 'lod'; did you mean 'load'"),
        ("wait_mean_s", {"load": ["0.9"]}, "load 0.9: is not in this sweep, which has 0.8, 1"),
    ],
)
def test_what_is_not_there_is_named(
    sweep: SweepTable, metric: str, where: dict[str, list[str]], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        points(sweep, [metric], where)
