"""Logs of the model: against the model one job at a time and its expectations; other machines,
loads, what is refused."""

from __future__ import annotations

import hashlib
import io
import time
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qbatch.model.errors import UsageError
from qbatch.workloads import Log, facts, lublin, machine_procs, read_log, write_log
from qbatch.workloads.findings import findings
from qbatch.workloads.lublin import (
    BATCH,
    INTERACTIVE,
    TYPELESS,
    TYPES,
    Parameters,
    Streams,
    generate_lublin,
)
from tests.workloads.samples import same, written

from .expected import expected, size_probabilities
from .literal import literal_jobs

STREAMS = {"interactive": 0, "batch": 1, "typeless": 2}
MANY = 200_000


def text(log: Log) -> bytes:
    out = io.BytesIO()
    write_log(out, log.header, log.columns)
    return out.getvalue()


@pytest.fixture(scope="module")
def many() -> dict[str, Log]:
    return {types: generate_lublin(jobs=MANY, types=types, seed=7) for types in TYPES}


# ---------------------------------------------------------------------------------------------- one
# job at a time


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize(
    ("seed", "procs"), [(0, 128), (1, 10), (2, 100), (3, 1024), (4, 2048), (5, 430)]
)
def test_it_is_the_model_one_job_at_a_time(types: str, seed: int, procs: int) -> None:
    if procs == 10 and types != "none":
        procs = 48
    sets = tuple(lublin.for_machine(each, procs) for each in TYPES[types])
    literal = literal_jobs(sets, tuple(STREAMS[each.name] for each in sets), seed, procs, 600)
    log = generate_lublin(jobs=600, procs=procs, types=types, seed=seed)
    queue = [{"interactive": 0, "batch": 1, "typeless": -1}[each.name] for each in sets]
    names = ("submit", "run", "procs_allocated", "queue")
    made = list(zip(*(log[name].tolist() for name in names), strict=True))
    assert made == [(submit, run, size, queue[kind]) for submit, run, size, kind in literal]


# ----------------------------------------------------------------------------------------------
# expectations


@pytest.mark.parametrize(
    ("parameters", "procs", "run_s", "area", "serial", "pow2"),
    [
        (BATCH, 13.85, 9504, 164_157, 29.4, 96.8),
        (INTERACTIVE, 8.06, 244, 2_961, 15.5, 84.4),
        (TYPELESS, 12.13, 4359, 83_831, 24.5, 86.9),
    ],
    ids=["batch", "interactive", "typeless"],
)
def test_the_parameters_mean_what_was_measured(
    parameters: Parameters, procs: float, run_s: float, area: float, serial: float, pow2: float
) -> None:
    # Monte Carlo values of docs/spec/workloads.md 2.1, on 128 processors.
    exact = expected(parameters, 128)
    assert exact.procs == pytest.approx(procs, rel=0.004)
    assert exact.run_s == pytest.approx(run_s, rel=0.015)
    assert exact.area == pytest.approx(area, rel=0.006)
    assert (100 * exact.serial, 100 * exact.pow2) == pytest.approx((serial, pow2), abs=0.2)


@pytest.mark.parametrize("types", ["none", "batch", "interactive"])
def test_jobs_have_the_moments_of_the_model(many: dict[str, Log], types: str) -> None:
    log, exact = many[types], expected(TYPES[types][0], 128)
    size, run = log["procs_allocated"].astype(float), log["run"].astype(float)
    for values, mean in ((size, exact.procs), (run, exact.run_s), (size * run, exact.area)):
        assert values.mean() == pytest.approx(mean, abs=3.5 * values.std() / sqrt(MANY))
    shares = facts(log)["sizes"]
    assert shares["serial_percent"] == pytest.approx(100 * exact.serial, abs=0.4)
    assert shares["power_of_two_percent"] == pytest.approx(100 * exact.pow2, abs=0.4)
    assert (run.min() >= 1, run.max() <= 162_754) == (True, True)


@pytest.mark.parametrize("types", ["none", "batch", "interactive"])
@pytest.mark.parametrize("procs", [128, 338, 32])
def test_every_size_is_as_frequent_as_in_the_model(types: str, procs: int) -> None:
    parameters = lublin.for_machine(TYPES[types][0], procs)
    probability = size_probabilities(parameters, procs)
    jobs = 50_000
    size, count = np.unique(
        generate_lublin(jobs=jobs, procs=procs, types=types, seed=3)["procs_allocated"],
        return_counts=True,
    )
    found = dict(zip(size.tolist(), count.tolist(), strict=True))
    assert set(found) <= set(probability)
    # Chi-squared, sizes of fewer than 10 expected jobs taken together.
    cells = [
        (found.get(each, 0), jobs * share)
        for each, share in probability.items()
        if jobs * share >= 10
    ]
    cells.append(tuple(jobs - sum(column) for column in zip(*cells, strict=True)))  # type: ignore[arg-type]
    distance = sum((have - mean) ** 2 / max(mean, 1.0) for have, mean in cells)
    freedom = len(cells) - 1
    assert distance < freedom + 3.5 * sqrt(2 * freedom)


def test_typeless_jobs_fall_into_the_classes_of_scojo_pect(many: dict[str, Log]) -> None:
    # docs/spec/papers.md 4.9: jobs 63.7/19.7/16.6 %, work 0.5/25.8/73.7 %, sizes 8.7/16.6/20.2 of
    # short, medium and long jobs.
    printed = ((63.7, 19.7, 16.6), (0.5, 25.8, 73.7), (8.7, 16.6, 20.2))
    exact = expected(TYPELESS, 128)
    assert [100 * each for each in exact.class_jobs] == pytest.approx(printed[0], abs=0.1)
    assert [100 * each for each in exact.class_work] == pytest.approx(printed[1], abs=0.15)
    assert exact.class_procs == pytest.approx(printed[2], abs=0.07)
    size, run = (
        many["none"]["procs_allocated"].astype(np.int64),
        many["none"]["run"].astype(np.int64),
    )
    class_ = np.searchsorted([600, 10_800], run, side="right")
    jobs = np.bincount(class_) / MANY
    assert (100 * jobs).tolist() == pytest.approx(printed[0], abs=0.4)
    work = np.bincount(class_, size * run)
    assert (100 * work / work.sum()).tolist() == pytest.approx(printed[1], abs=0.8)
    assert (np.bincount(class_, size) / (jobs * MANY)).tolist() == pytest.approx(
        printed[2], abs=0.3
    )


def test_larger_jobs_run_longer(many: dict[str, Log]) -> None:
    size, run = many["none"]["procs_allocated"], many["none"]["run"]
    assert run[size >= 64].mean() > 2 * run[size == 1].mean()


def test_arrivals_follow_the_hours_of_the_day(many: dict[str, Log]) -> None:
    # The clock of the model loses the fraction of a second of each gap: arrival k is up to k
    # seconds early.
    for types in ("none", "batch", "interactive"):
        parameters = TYPES[types][0]
        upto = np.concatenate(
            ([0], np.cumsum(lublin.bucket_weights(parameters.anum, parameters.bnum)))
        )
        points = np.cumsum(
            lublin.gap_points(parameters, Streams(7, STREAMS[parameters.name]), 5000)
        )
        within_s = np.interp(points % upto[-1], upto, np.arange(49) * 1800.0)
        early_s = points // upto[-1] * 86_400 + within_s - many[types]["submit"][:5000]
        assert (early_s > -0.01).all()
        assert early_s[-1] == pytest.approx(2500, abs=150)
        assert np.diff(early_s).max() <= 1.01


def test_an_arrival_that_pays_for_a_half_hour_exactly_comes_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weights = lublin.bucket_weights(TYPELESS.anum, TYPELESS.bnum)
    monkeypatch.setattr(lublin, "gap_points", lambda parameters, streams, jobs: np.tile(weights, 3))
    assert lublin.arrival_times(TYPELESS, Streams(1, 2), 144).tolist() == [
        1800 * each for each in range(1, 145)
    ]


def test_two_types_share_a_log_each_with_its_own_jobs(many: dict[str, Log]) -> None:
    both = many["both"]
    queue = both["queue"]
    assert set(queue.tolist()) == {0, 1}
    assert both.header.queues == {0: "interactive", 1: "batch"}
    # Interactive jobs come every 619 s, batch jobs every 3517 s in the mean.
    assert (queue == 1).mean() == pytest.approx(619.3 / (619.3 + 3516.9), abs=0.01)
    for number, types in enumerate(("interactive", "batch")):
        for name in ("submit", "run", "procs_allocated"):
            own = both[name][queue == number]
            assert own.tolist() == many[types][name][: len(own)].tolist()


# ----------------------------------------------------------------------------------------------
# machines


def test_on_the_machine_of_the_paper_the_sets_are_the_published_ones() -> None:
    for published in (BATCH, INTERACTIVE, TYPELESS):
        assert lublin.for_machine(published, 128) == published
    assert [lublin.log2(2**each) for each in range(31)] == list(range(31))


@pytest.mark.parametrize("procs", [2, 3, 7, 10, 33, 100, 338, 430, 1000, 65_536])
def test_on_another_machine_sizes_go_up_to_it_and_not_beyond(procs: int) -> None:
    parameters = lublin.for_machine(TYPELESS, procs)
    assert parameters.uhi == pytest.approx(np.log2(procs), abs=1e-11)
    assert parameters.umed == pytest.approx(
        max(np.log2(procs) - 2.5, 0.8 + (np.log2(procs) - 0.8) / 3), abs=1e-11
    )
    log = generate_lublin(jobs=4000, procs=procs, seed=2)
    assert machine_procs(log.header) == procs
    assert 0.9 * procs < log["procs_allocated"].max() <= procs
    assert findings(log) == []


def test_sizes_may_be_set() -> None:
    log = generate_lublin(jobs=4000, procs=256, ulow=1.0, umed=2.0, uhi=3.0, uprob=0.5)
    assert set(log["procs_allocated"].tolist()) == {1, 2, 3, 4, 5, 6, 7, 8}
    assert "ulow=1.0 umed=2.0 uhi=3.0 uprob=0.5" in " ".join(log.header.notes)


# ----------------------------------------------------------------------------------------------
# loads


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("load", [0.05, 0.7, 1.3, 4.0])
def test_the_load_asked_for_is_reached(types: str, load: float) -> None:
    log = generate_lublin(jobs=2000, procs=256, types=types, seed=5, load=load)
    assert facts(log)["load"]["offered"] == pytest.approx(load, rel=0.0005)
    plain = generate_lublin(jobs=2000, procs=256, types=types, seed=5)
    assert [log[name].tolist() for name in ("run", "procs_allocated")] == [
        plain[n].tolist() for n in ("run", "procs_allocated")
    ]
    ratio = (log["submit"][-1] - log["submit"][0]) / (plain["submit"][-1] - plain["submit"][0])
    assert np.abs(log["submit"] - plain["submit"] * ratio).max() <= 2


def test_a_small_log_reaches_its_load_too() -> None:
    for seed in range(20):
        log = generate_lublin(jobs=30, procs=64, seed=seed, load=0.9)
        assert facts(log)["load"]["offered"] == pytest.approx(0.9, rel=0.01)


def test_a_mean_gap_asked_for_is_reached() -> None:
    log = generate_lublin(jobs=10_000, interarrival=808)
    assert facts(log)["load"]["interarrival_mean_s"] == pytest.approx(808, abs=0.001)


def test_the_load_of_wide_machines_is_summed_without_overflow() -> None:
    log = generate_lublin(jobs=2000, procs=2**30, load=0.5)
    assert facts(log)["load"]["offered"] == pytest.approx(0.5, rel=0.0005)


# ---------------------------------------------------------------------------------------------- the
# log


def test_the_bytes_are_these_on_every_machine() -> None:
    digest = [
        hashlib.sha256(text(generate_lublin(jobs=3000, **given))).hexdigest()[:16]
        for given in (
            {"seed": 1},
            {"types": "both", "procs": 430, "load": 0.8, "estimates": "tsafrir"},
            {"types": "batch", "seed": 2**80, "estimates": "tsafrir", "estimate_max": 172_800},
        )
    ]
    assert digest == BYTES


BYTES = ["b5207e1d68a87ce8", "67276890ab9e6f7a", "cc2b632d78355be0"]


def test_a_longer_log_begins_with_the_jobs_of_a_shorter_one() -> None:
    for types in TYPES:
        short, long = generate_lublin(jobs=500, types=types), generate_lublin(jobs=900, types=types)
        for name in ("submit", "run", "procs_allocated", "queue"):
            assert long[name][:500].tolist() == short[name].tolist()


def test_ten_thousand_jobs_take_well_under_a_second() -> None:
    def seconds() -> float:
        begin = time.perf_counter()
        generate_lublin(jobs=10_000, types="both", estimates="tsafrir", load=0.8)
        return time.perf_counter() - begin

    assert min(seconds() for _ in range(5)) < 0.5


def test_another_seed_is_another_log() -> None:
    assert not same(generate_lublin(jobs=50, seed=1), generate_lublin(jobs=50, seed=2))


def test_it_is_written_and_read_again_and_says_how_it_was_made(tmp_path: Path) -> None:
    log = generate_lublin(
        jobs=700,
        procs=64,
        types="both",
        seed=9,
        load=0.75,
        estimates="tsafrir",
        estimate_max=200_000,
    )
    read = read_log(written(tmp_path, text(log)))
    assert same(log, read)
    assert (
        len(read),
        read.header.max_jobs,
        machine_procs(read.header),
        read.header.max_runtime,
    ) == (700, 700, 64, 200_000)
    notes = read.header.notes
    command = (
        "--jobs 700 --procs 64 --types both --seed 9 --load 0.75 --estimates tsafrir "
        "--estimate-max 200000"
    )
    assert notes[0] == f"made by qbatch generate lublin {command}"
    assert "Lublin and Feitelson 2003" in notes[1]
    assert [note.partition(":")[0] for note in notes[2:4]] == ["interactive", "batch"]
    assert "aarr=6.0415" in notes[3]
    assert (log["run"] <= log["time_requested"]).all()
    assert read.line.tolist() == log.line.tolist()


def test_estimates_are_exact_unless_others_are_asked_for() -> None:
    log = generate_lublin(jobs=300)
    assert log["time_requested"].tolist() == log["run"].tolist()
    assert (log["status"] == 1).all()
    assert (log["queue"] == -1).all()
    assert log.header.max_runtime == 162_754


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"jobs": 0}, "--jobs is 0; use 1 to"),
        ({"jobs": 10**9}, "--jobs is 1000000000; use 1 to"),
        ({"procs": 0}, "--procs is 0; use 2 to"),
        ({"procs": 1}, "give another of --ulow, --umed, --uhi or more --procs"),
        ({"procs": 2**31}, "--procs is 2147483648"),
        (
            {"types": "interactive", "procs": 4},
            "sizes of interactive jobs on 4 processors: ULow 1, UMed 0.833333, UHi 0.5",
        ),
        ({"types": "bach"}, "did you mean 'batch'"),
        ({"seed": -1}, "--seed is -1"),
        ({"load": 0.0}, "--load is 0"),
        ({"load": float("nan")}, "--load is nan"),
        ({"interarrival": 0.0}, "--interarrival is 0"),
        ({"interarrival": 10.0, "load": 0.5}, "give one of them"),
        ({"jobs": 1, "load": 0.5}, "use --jobs 2 or more"),
        ({"jobs": 2, "load": 1000.0}, "--load 1000 cannot be reached with these 2 jobs"),
        ({"interarrival": 0.001}, "--interarrival 0.001 cannot be reached"),
        ({"estimates": "exakt"}, "did you mean 'exact'"),
        ({"estimate_max": 3600}, "goes with --estimates tsafrir"),
        ({"estimate_max": 3600, "estimates": "tsafrir"}, "jobs run longer, the longest"),
        ({"uhi": 7.5}, "UHi 7.5 do not ascend"),
        ({"umed": 0.5}, "UMed 0.5"),
        ({"uprob": 1.5}, "--uprob is 1.5"),
        ({"ulow": float("nan")}, "ULow nan"),
        ({"types": "both", "ulow": 1.0}, "--types both has two"),
    ],
)
def test_what_cannot_be_is_refused_by_name(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        generate_lublin(**{"jobs": 100, **wrong})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
