"""Whole months: counts, demands and statistics, each computed here again from the log and its
columns alone."""

from __future__ import annotations

import hashlib
import io
import math
from pathlib import Path

import numpy as np
import pytest

from qbatch.model.errors import UsageError
from qbatch.workloads import FIELDS, Log, findings, read_log, write_log
from qbatch.workloads.machines import load_machine
from qbatch.workloads.origin2000 import CLASSES, MONTHS, generate_month
from qbatch.workloads.origin2000.month import month_record
from tests.workloads.samples import same, written

from .months import CASES, month_log

HOUR = 3600
GB_KB = 1 << 20

every_month = pytest.mark.parametrize(("name", "seed"), CASES)


def column(log: Log, name: str) -> list[int]:
    return [int(value) for value in log[name].tolist()]


def by_class(log: Log, is_so: list[bool]) -> list[float]:
    """Return the share of each class for which something is so."""
    queue = column(log, "queue")
    shares = []
    for number in range(1, 13):
        inside = [so for so, each in zip(is_so, queue, strict=True) if each == number]
        shares.append(sum(inside) / len(inside))
    return shares


def correlation(one: list[float], other: list[float]) -> float:
    return float(np.corrcoef(np.array(one), np.array(other))[0, 1])


@every_month
def test_the_counts_are_those_of_the_table(name: str, seed: int) -> None:
    queue = column(month_log(name, seed), "queue")
    assert tuple(queue.count(number) for number in range(1, 13)) == MONTHS[name].counts


@every_month
def test_each_class_demands_what_the_table_says_of_processors_and_memory(
    name: str, seed: int
) -> None:
    month, log = MONTHS[name], month_log(name, seed)
    hours = [0.0] * 12
    memory = [0.0] * 12
    for queue, procs, run, kb in zip(
        *(column(log, name) for name in ("queue", "procs_requested", "run", "memory_requested")),
        strict=True,
    ):
        hours[queue - 1] += procs * run / HOUR
        memory[queue - 1] += procs * run / HOUR * kb / GB_KB
    for sums, size, printed, overall in (
        (hours, 960, month.procs_percent, month.procs_overall),
        (memory, 336, month.memory_percent, month.memory_overall),
    ):
        percents = [100 * each / (size * 24 * month.days) for each in sums]
        assert sum(percents) == pytest.approx(overall, abs=0.05)
        for found, base in zip(percents, printed, strict=True):
            assert abs(found - base) <= 0.5 or base == 0
            assert found == pytest.approx(base, rel=0.05) if base else 0 < found < 0.5


@every_month
def test_the_demands_are_met_within_2_percent(name: str, seed: int) -> None:
    from qbatch.workloads.origin2000.month import class_demands, class_targets, month_jobs

    place, jobs = month_jobs(MONTHS[name], seed)
    targets = class_targets(MONTHS[name])
    area = jobs.procs * jobs.run_s
    for found, target in zip(class_demands(place, area), targets, strict=True):
        assert found == pytest.approx(target.procs_seconds, rel=0.02)
    for found, target in zip(class_demands(place, area * jobs.memory_kb), targets, strict=True):
        assert found == pytest.approx(target.memory_seconds, rel=0.02)


@every_month
@pytest.mark.parametrize(("hours", "low", "high"), [(1, 0.12, 0.33), (10, 0.11, 0.42)])
def test_of_long_requests_so_many_end_within_a_minute(
    name: str, seed: int, hours: int, low: float, high: float
) -> None:
    log = month_log(name, seed)
    pairs = zip(column(log, "time_requested"), column(log, "run"), strict=True)
    runs = [run for requested, run in pairs if requested > hours * HOUR]
    assert low <= sum(run < 60 for run in runs) / len(runs) <= high


@every_month
def test_15_to_20_percent_of_each_class_end_within_a_minute(name: str, seed: int) -> None:
    log = month_log(name, seed)
    assert all(
        0.15 <= share <= 0.20 for share in by_class(log, [run < 60 for run in column(log, "run")])
    )


@every_month
def test_most_lt_jobs_could_have_asked_for_st(name: str, seed: int) -> None:
    log = month_log(name, seed)
    pairs = zip(column(log, "queue"), column(log, "run"), strict=True)
    runs = [run for queue, run in pairs if CLASSES[queue - 1].startswith("lt")]
    assert sum(run <= 50 * HOUR for run in runs) / len(runs) > 0.5


@every_month
def test_25_to_35_percent_of_each_class_use_below_a_tenth_of_their_memory(
    name: str, seed: int
) -> None:
    log = month_log(name, seed)
    low = [
        10 * used < kb
        for used, kb in zip(
            column(log, "memory_used"), column(log, "memory_requested"), strict=True
        )
    ]
    assert all(0.25 <= share <= 0.35 for share in by_class(log, low))


@every_month
def test_nearly_all_that_end_within_a_minute_use_below_1_gb(name: str, seed: int) -> None:
    log = month_log(name, seed)
    rows = zip(
        column(log, "run"), column(log, "memory_used"), column(log, "procs_requested"), strict=True
    )
    used = [kb * procs for run, kb, procs in rows if run < 60]
    assert sum(kb < GB_KB for kb in used) / len(used) >= 0.95


@every_month
def test_a_large_fraction_is_serial_and_many_are_powers_of_two(name: str, seed: int) -> None:
    procs = column(month_log(name, seed), "procs_requested")
    assert 0.3 <= procs.count(1) / len(procs) <= 0.5
    assert sum(procs.count(2**k) for k in range(7)) / len(procs) > 0.6


@every_month
def test_about_half_of_the_serial_jobs_request_over_512_mb(name: str, seed: int) -> None:
    log = month_log(name, seed)
    pairs = zip(column(log, "procs_requested"), column(log, "memory_requested"), strict=True)
    serial = [kb for procs, kb in pairs if procs == 1]
    assert 0.4 <= sum(kb > 512 * 1024 for kb in serial) / len(serial) <= 0.65


@every_month
def test_longer_jobs_are_wider_and_use_more_memory_per_processor(name: str, seed: int) -> None:
    log = month_log(name, seed)
    runs = [math.log(run) for run in column(log, "run")]
    assert correlation(runs, column(log, "procs_requested")) > 0
    assert correlation(runs, column(log, "memory_used")) > 0


@every_month
def test_wider_jobs_request_less_memory_per_processor(name: str, seed: int) -> None:
    log = month_log(name, seed)
    assert correlation(column(log, "memory_requested"), column(log, "procs_requested")) < 0


@every_month
def test_every_job_is_of_its_class_and_fits_a_host(name: str, seed: int) -> None:
    log, machine = month_log(name, seed), load_machine("origin2000")
    names = ("procs_requested", "memory_requested", "time_requested", "queue")
    for procs, kb, requested, queue in set(
        zip(*(column(log, name) for name in names), strict=True)
    ):
        found = machine.class_of(procs, procs * kb * 1024, requested * 1_000_000)
        assert found is not None
        assert found.name == CLASSES[queue - 1] == log.header.queues[queue]
        assert any(
            procs <= host.cpus and procs * kb * 1024 <= host.memory for host in machine.hosts
        )


@every_month
def test_every_row_is_sound(name: str, seed: int) -> None:
    log = month_log(name, seed)
    assert findings(log) == []
    run, requested = log["run"], log["time_requested"]
    assert (run >= 1).all()
    assert (run <= requested).all()
    assert ((log["status"] == 0) == (run == requested)).all()
    assert (log["memory_used"] >= 1).all()
    assert (log["memory_used"] <= log["memory_requested"]).all()
    assert log["job"].tolist() == list(range(1, len(log) + 1))
    assert (np.diff(log["submit"]) >= 0).all()
    assert log["submit"][0] >= 0
    assert log["submit"][-1] < MONTHS[name].days * 86400


@pytest.mark.parametrize("name", MONTHS)
def test_a_round_trip_through_swf_loses_nothing(name: str, tmp_path: Path) -> None:
    log = month_log(name, 1, 7)
    out = io.BytesIO()
    write_log(out, log.header, log.columns)
    read = read_log(written(tmp_path, out.getvalue()))
    assert same(log, read)
    assert read.line.tolist() == log.line.tolist()
    again = io.BytesIO()
    write_log(again, read.header, read.columns)
    assert again.getvalue() == out.getvalue()


@pytest.mark.parametrize("days", [1, 7, 28])
@pytest.mark.parametrize(
    ("before", "name"), list(zip(list(MONTHS), list(MONTHS)[1:], strict=False))
)
def test_the_warm_up_is_the_end_of_the_month_before(before: str, name: str, days: int) -> None:
    log, month, earlier = generate_month(name, warmup_days=days), month_log(name), month_log(before)
    first = days * 86400
    shift = MONTHS[before].days * 86400 - first
    late = earlier["submit"] >= shift
    count = int(late.sum())
    assert count > 20
    assert log.header.unix_start_time == month.header.unix_start_time - first
    assert (log["submit"] < first).tolist() == [True] * count + [False] * len(month)
    for field in FIELDS[1:]:
        offsets = (shift, -first) if field == "submit" else (0, 0)
        assert log[field][:count].tolist() == (earlier[field][late] - offsets[0]).tolist()
        assert log[field][count:].tolist() == (month[field] - offsets[1]).tolist()


def test_octobers_warm_up_is_a_week_of_another_october() -> None:
    log, month = month_log("1999-10", 1, 7), month_log("1999-10")
    count = len(log) - len(month)
    week = MONTHS["1999-10"].jobs * 7 / 31
    assert 0.8 * week < count < 1.2 * week
    assert set(column(log, "queue")[:count]) == set(range(1, 13))
    assert log["run"][:count].tolist() != month["run"][-count:].tolist()


@pytest.mark.parametrize("name", MONTHS)
def test_the_same_seed_gives_the_same_bytes_on_every_machine(name: str) -> None:
    log = month_log(name, 1, 7)
    out = io.BytesIO()
    write_log(out, log.header, log.columns)
    assert hashlib.sha256(out.getvalue()).hexdigest() == SHA256[name]


def test_another_seed_gives_another_month() -> None:
    assert month_log("1999-12", 1)["run"].tolist() != month_log("1999-12", 2)["run"].tolist()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"month": "1999-09"}, "--month '1999-09': use one of 1999-10.*did you mean"),
        ({"month": "December"}, "--month 'December': use one of"),
        ({"seed": -1}, "--seed is -1"),
        ({"warmup_days": -1}, "--warmup-days is -1; use 0 to 28"),
        ({"warmup_days": 29}, "--warmup-days is 29; use 0 to 28"),
    ],
)
def test_values_out_of_range_are_named(asked: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        generate_month(**({"month": "1999-12"} | asked))  # type: ignore[arg-type]


def test_the_record_of_a_month_says_what_its_log_says() -> None:
    record, log = month_record("1999-12", 1), month_log("1999-12")
    assert all(fact["in_range"] for fact in record["facts"])
    facts = {fact["name"]: fact["value"] for fact in record["facts"]}
    assert facts["serial jobs"] == column(log, "procs_requested").count(1) / len(log)
    assert record["overall"]["procs_percent"] == pytest.approx(89, abs=0.01)
    assert [row["jobs"] for row in record["classes"]] == list(MONTHS["1999-12"].counts)


SHA256 = {
    "1999-10": "74a899cc1d9bb038e631a74189bb7dcb497c4009c39023f603aff4da09652066",
    "1999-11": "6a7dbef6e955a194eba4e6b31365165258fada580b1cd3329b420da6c10c3807",
    "1999-12": "b3764366595d6b1ee119812514157dc1b763b9438e41a356874c7037f34b926d",
    "2000-01": "4270708d2dc87b730a56479a1ca7b98082242d77d1989f599df26770828e1d1f",
    "2000-02": "30a6adc16ae62df9393a29f57fa1fe55731387b79aa153c90b57ca9f1537e6f8",
    "2000-03": "e96e89fc03ff6c7bc7b9670d2d7c3c3c7549f428cd65421f69cb65f64e2daa87",
}
