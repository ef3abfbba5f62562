"""The statistics of the generated cluster: counted again by hand, and within the ranges that the
reference claims."""

from __future__ import annotations

import pytest

from qbatch.workloads.cluster import MARGINALS, GeneratedCluster, generate_cluster

RANGES = {
    ("jobs with GPUs", "% of jobs"): (45, 70),
    ("GPUs of a job, mean", "GPUs"): (1.75, 3.72),
    ("jobs with one GPU", "% of GPU jobs"): (50, 80),
    ("jobs with 8 GPUs or more", "% of GPU jobs"): (5, 12),
    ("jobs with one GPU", "% of GPU time"): (3, 14),
    ("jobs with 8 GPUs or more", "% of GPU time"): (55, 70),
    ("run time of GPU jobs, median", "s"): (200, 600),
    ("run time of GPU jobs, mean", "s"): (5_000, 10_000),
    ("completed", "% of GPU jobs"): (55, 65),
    ("cancelled", "% of GPU jobs"): (18, 30),
    ("failed", "% of GPU jobs"): (12, 20),
    ("completed", "% of GPU time"): (42, 60),
    ("failed", "% of GPU time"): (2, 10),
    ("load", "% of GPUs"): (79.9, 80.1),
}


@pytest.fixture(scope="module", params=[1, 2, 3])
def month(request: pytest.FixtureRequest) -> GeneratedCluster:
    return generate_cluster(seed=request.param)


def test_the_statistics_of_a_month_are_near_the_published_ones(month: GeneratedCluster) -> None:
    values = {(each.name, each.unit): each.measure(month) for each in MARGINALS}
    assert len(values) == len(MARGINALS)
    for key, (low, high) in RANGES.items():
        assert low <= values[key] <= high, key


def test_the_statistics_are_those_that_their_names_say(month: GeneratedCluster) -> None:
    values = {(each.name, each.unit): each.measure(month) for each in MARGINALS}
    run, gpus = month.log["run"].tolist(), month.gpus.tolist()
    status = month.log["status"].tolist()
    pairs = [(g, r, s) for g, r, s in zip(gpus, run, status, strict=True) if g]
    time = sum(g * r for g, r, _ in pairs)

    def near(name: str, unit: str, value: float) -> None:
        assert values[name, unit] == pytest.approx(value, rel=1e-12)

    near("jobs with one GPU", "% of GPU jobs", 100 * sum(g == 1 for g, _, _ in pairs) / len(pairs))
    near(
        "jobs with 8 GPUs or more",
        "% of GPU time",
        100 * sum(g * r for g, r, _ in pairs if g > 7) / time,
    )
    near("cancelled", "% of GPU time", 100 * sum(g * r for g, r, s in pairs if s == 5) / time)
    near("run time of GPU jobs, mean", "s", sum(r for _, r, _ in pairs) / len(pairs))
    cpu = [s for g, s in zip(gpus, status, strict=True) if not g]
    near("completed", "% of CPU jobs", 100 * cpu.count(1) / len(cpu))
    hours = [
        second // 3600 % 24
        for second, g in zip(month.log["submit"].tolist(), gpus, strict=True)
        if g
    ]
    counts = [hours.count(hour) for hour in range(24)]
    near("submissions, busiest hour over quietest", "", max(counts) / min(counts))


def test_every_published_value_names_its_source() -> None:
    for each in MARGINALS:
        for text in filter(None, (each.helios, each.philly)):
            assert text[-2:] in (" A", " D", " P", " H")
