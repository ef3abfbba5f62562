from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from qbatch.metrics import measure
from qbatch.metrics.interval import SAME
from qbatch.metrics.machine import longest_queue
from qbatch.model.errors import InputError
from qbatch.model.machine import one_host
from qbatch.model.record import MICROSECONDS
from qbatch.policies import load_policy
from qbatch.reports.comparison import ComparedSettings, Side, compare, match
from qbatch.reports.comparison_words import amount, sentence, signed
from qbatch.simulation import prepare, run
from qbatch.workloads import generate_log
from tests.harness import size
from tests.reports.samples import (
    KTH_CLOCK,
    by_hand,
    in_pieces,
    random_workload,
    result_of,
    scheduled,
    workload,
)

S = MICROSECONDS


def side(schedule, where="one", document=None):
    return Side(result_of(schedule, document=document), schedule, where, schedule.policy)


def of(document, name):
    return next(record for record in document["metrics"] if record["name"] == name)


@pytest.fixture(scope="module")
def pair():
    work = random_workload(300, clock=KTH_CLOCK)
    return scheduled(work), scheduled(work, "fcfs")


def test_the_record_holds_the_metrics_of_both_runs(pair) -> None:
    easy, fcfs = pair
    document = compare(side(easy), side(fcfs))
    first, second = measure(easy, costly=False), measure(fcfs, costly=False)
    for name in (
        "wait_mean_s",
        "slowdown_mean",
        "bounded_slowdown_mean",
        "makespan_s",
        "utilisation_submit",
    ):
        record = of(document, name)
        assert record["a"] == pytest.approx(first[name], rel=1e-6), name
        assert record["b"] == pytest.approx(second[name], rel=1e-6), name
        assert record["difference"] == pytest.approx(
            second[name] - first[name], rel=1e-3, abs=1e-9
        ), name
    wait = of(document, "wait_mean_s")
    assert wait["low"] <= wait["difference"] <= wait["high"]
    assert sum(
        wait["effect"][key] for key in ("jobs_better", "jobs_worse", "jobs_equal")
    ) == pytest.approx(1)


def test_the_effects_are_those_of_the_matched_jobs(pair) -> None:
    easy, fcfs = pair
    effect = of(compare(side(easy), side(fcfs)), "wait_mean_s")["effect"]
    assert effect["jobs_better"] == pytest.approx(float(np.mean(fcfs.start < easy.start)))
    assert effect["jobs_worse"] == pytest.approx(float(np.mean(fcfs.start > easy.start)))


def test_one_schedule_against_itself_is_equal_everywhere(pair) -> None:
    document = compare(side(pair[0]), side(pair[0]))
    assert {record["finding"] for record in document["metrics"]} == {"equal"}
    assert {record["finding"] for records in document["parts"].values() for record in records} == {
        "equal"
    }


def test_the_direction_is_that_of_the_better_policy(pair) -> None:
    easy, fcfs = pair
    assert of(compare(side(easy), side(fcfs)), "wait_mean_s")["finding"] == "worse"
    document = compare(side(fcfs), side(easy))
    assert of(document, "wait_mean_s")["finding"] == "better"
    assert of(document, "wait_mean_s")["sentence"].startswith(
        "Mean wait: easy is better than fcfs, "
    )


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_both_orders_of_two_schedules_say_the_same(seed, replicas) -> None:
    """The relative difference goes from the higher value to the lower one, and the seconds are in
    units of the higher."""
    turned = {"better": "worse", "worse": "better"}
    works = [random_workload(80, 10 * seed + place) for place in range(replicas)]
    policies = ("fcfs", "easy") if seed % 2 else ("easy", "conservative")
    pairs = [tuple(side(scheduled(work, policy)) for policy in policies) for work in works]
    ab = compare(*pairs[0], replicas=pairs[1:])
    ba = compare(*pairs[0][::-1], replicas=[pair[::-1] for pair in pairs[1:]])
    for one, other in zip(ab["metrics"], ba["metrics"], strict=True):
        assert one["sentence"] == other["sentence"]
        assert one["finding"] == turned.get(other["finding"], other["finding"])
        assert one["ratio"] is None or one["ratio"] * other["ratio"] == pytest.approx(1)
        assert one["p"] == (None if other["p"] is None else pytest.approx(other["p"]))
    findings = [
        [turned.get(record["finding"], record["finding"]) for record in ba["parts"]["class"]],
        [record["finding"] for record in ab["parts"]["class"]],
    ]
    assert findings[0] == findings[1]


def test_what_is_too_little_to_matter_is_so_in_both_orders() -> None:
    """100 s and 101 s: a share of the larger, not of whichever is named first."""
    work = random_workload(40)
    a, b = (
        side(by_hand(work, work.submit + wait * S, name)) for wait, name in ((100, "a"), (101, "b"))
    )
    for document in (compare(a, b), compare(b, a)):
        record = of(document, "wait_mean_s")
        assert record["finding"] == "negligible"
        summary = (
            "a differs from b by too little to matter, less than 1 %: 1.0 % lower (b 1.68 "
            "min, a 1.67 min"
        )
        assert summary in record["sentence"]


def test_the_only_part_says_what_the_whole_says() -> None:
    """Also where a correction for three quantities would have made noise of it; 1970 has one month
    and all jobs are narrow."""
    would_differ = 0
    for seed in range(12):
        work = random_workload(40, seed)
        pair = scheduled(work), scheduled(work, "fcfs")
        document = compare(
            side(pair[0]), side(pair[1]), ComparedSettings(parts=("month", "kind", "class"))
        )
        months = document["parts"]["month"]
        assert [record["name"] for record in months] == [
            "wait_mean_s",
            "slowdown_mean",
            "bounded_slowdown_mean",
        ]
        for record in months:
            headline = of(document, record["name"])
            assert record["p_holm"] == headline["p"]
            assert {
                key: record[key] for key in ("jobs", "difference", "low", "high", "finding")
            } == {key: headline[key] for key in ("jobs", "difference", "low", "high", "finding")}
            would_differ += headline["finding"] in ("better", "worse") and 3 * headline["p"] > 0.05
        assert all(
            record["p_holm"] >= record["p"]
            for record in document["parts"]["class"]
            if record["p"] is not None
        )
    assert would_differ


def test_the_only_part_of_replicas_is_over_them_too() -> None:
    pairs = [
        (side(scheduled(work)), side(scheduled(work, "fcfs")))
        for work in (random_workload(40, seed) for seed in (1, 5, 6))
    ]
    document = compare(*pairs[0], ComparedSettings(parts=("month",)), pairs[1:])
    for record in document["parts"]["month"]:
        assert (record["difference"], record["p_holm"]) == tuple(
            of(document, record["name"])[key] for key in ("difference", "p")
        )


def test_parts_hold_all_jobs_and_their_p_is_corrected(pair) -> None:
    document = compare(side(pair[0]), side(pair[1]), ComparedSettings(parts=("class", "size")))
    for records in document["parts"].values():
        waits = [record for record in records if record["name"] == "wait_mean_s"]
        assert sum(record["jobs"] for record in waits) == 300
        assert all(record["p_holm"] >= record["p"] for record in records if record["p"] is not None)
        assert any(record["p_holm"] > record["p"] for record in records if record["p"])


def test_only_common_counted_jobs_are_compared_and_the_others_are_reported() -> None:
    work = random_workload(40)
    counted = np.arange(40) >= 3
    first = by_hand(work.changed(counted=counted), work.submit, "a")
    start = np.where(np.arange(40) < 35, work.submit + 60 * S, -1)
    second = by_hand(work.changed(counted=counted), start, "b")
    document = compare(side(first), side(second))
    assert document["jobs"] == {"common": 32, "only_a": 5, "only_b": 0, "not_counted": 3}
    assert of(document, "wait_mean_s")["difference"] == pytest.approx(60)


def test_the_machine_is_compared_by_the_jobs_that_both_ran() -> None:
    work = random_workload(40)
    start = np.where(np.arange(40) < 20, work.submit, -1)
    document = compare(side(by_hand(work, work.submit, "a")), side(by_hand(work, start, "b")))
    for name in ("utilisation_submit", "makespan_s"):
        assert of(document, name)["difference"] == 0


def test_no_bound_of_the_utilisation_leaves_the_machine_more_than_full() -> None:
    work = random_workload(30, 3)
    submit = np.arange(30) * 86_400 * S
    length = np.full(30, 86_000 * S)
    full = work.changed(
        submit=submit, run=length, estimate=length, procs=np.full_like(work.procs, work.procs_total)
    )
    # Some of it is done in the days after, when others run.
    late = submit + np.where(np.arange(30) % 3 == 0, 80_000 * S, 0)
    document = compare(side(by_hand(full, submit, "a")), side(by_hand(full, late, "b")))
    record = of(document, "utilisation_submit")
    assert record["a"] > 0.99
    assert record["a"] + record["high"] <= 1


def test_jobs_are_matched_by_number_wherever_they_stand(pair) -> None:
    some = np.sort(np.random.default_rng(1).permutation(300)[:200])
    matched = match(side(pair[0]), side(pair[1].only(some), "two"))
    assert (
        matched.a.workload.number.tolist()
        == matched.b.workload.number.tolist()
        == (some + 1).tolist()
    )
    assert (np.diff(matched.a.workload.submit) >= 0).all()
    assert (matched.b.start == pair[1].start[some]).all()
    assert (matched.only_a, matched.only_b) == (100, 0)


def test_a_number_that_stands_twice_is_matched_in_order() -> None:
    work = workload([0, 10 * S, 20 * S], [1, 2, 3], [S] * 3, [S] * 3, number=np.array([7, 7, 8]))
    matched = match(side(by_hand(work, work.submit)), side(by_hand(work, work.submit + S)))
    assert matched.a.workload.procs.tolist() == matched.b.workload.procs.tolist() == [1, 2, 3]


def test_schedules_of_two_logs_are_refused_or_noted(pair) -> None:
    work = pair[0].workload
    other = scheduled(work.changed(number=work.number + 1000))
    with pytest.raises(InputError, match="no job number in common"):
        compare(side(pair[0]), side(other))
    wider = by_hand(work.changed(procs=work.procs + 1), work.submit)
    with pytest.raises(InputError, match="job 1 requests"):
        compare(side(pair[0]), side(wider))
    nobody = by_hand(work.changed(counted=np.zeros(300, bool)), work.submit)
    with pytest.raises(InputError, match="no counted job"):
        compare(side(pair[0]), side(nobody))
    later = by_hand(work.changed(submit=work.submit + S, procs_total=32), work.submit + S)
    hashes = [{"log": {"sha256": letter}} for letter in "xy"]
    notes = compare(side(pair[0], document=hashes[0]), side(later, "two", hashes[1]))["notes"]
    assert [note.split(" ")[0] for note in notes] == ["these", "300", "utilisation"]
    assert notes[-1] == "utilisation is not compared: the machines differ: 16 and 32 processors"


def test_replicas_give_student_s_interval_over_the_pairs() -> None:
    works = [random_workload(60, seed) for seed in range(5)]
    pairs = [(side(scheduled(work)), side(scheduled(work, "fcfs"))) for work in works]
    document = compare(*pairs[0], replicas=pairs[1:])
    record = of(document, "wait_mean_s")
    changes = [
        measure(scheduled(work, "fcfs"), costly=False)["wait_mean_s"]
        - measure(scheduled(work), costly=False)["wait_mean_s"]
        for work in works
    ]
    half = 2.7764451 * np.std(changes, ddof=1) / 5**0.5  # t(0.975, 4)
    assert record["difference"] == pytest.approx(np.mean(changes))
    assert (record["low"], record["high"]) == pytest.approx(
        (np.mean(changes) - half, np.mean(changes) + half)
    )
    assert (document["pairs"], len(record["replicas"])) == (5, 5)
    assert of(document, "makespan_s")["low"] is not None


def test_one_replica_with_values_is_no_reason_to_test_the_first_one() -> None:
    hour = 3600 * S
    # No day, so no utilisation.
    at_once = workload([0] * 3, [8] * 3, [hour] * 3, [600 * S, 1200 * S, 1800 * S])
    pairs = [
        [side(scheduled(work, policy)) for policy in ("easy", "fcfs")]
        for work in (random_workload(300), at_once)
    ]
    for one, other in (pairs, pairs[::-1]):
        record = of(compare(*one, replicas=[other]), "utilisation_submit")
        assert (record["finding"], record["low"], len(record["replicas"])) == ("unknown", None, 1)
        assert record["a"] > record["b"] > 0


def test_replicas_that_differ_by_the_same_are_not_tested() -> None:
    """An interval of width 0 over three seeds would say that the difference is known exactly."""
    pairs = []
    for seed in range(3):
        work = random_workload(60, seed)
        pairs.append(
            (side(by_hand(work, work.submit, "a")), side(by_hand(work, work.submit + 60 * S, "b")))
        )
    record = of(compare(*pairs[0], replicas=pairs[1:]), "wait_mean_s")
    assert (record["low"], record["high"], record["p"], record["finding"]) == (
        None,
        None,
        None,
        "unknown",
    )
    assert (
        record["sentence"]
        == f"Mean wait: a is 100.0 % lower than b (b 1 min, a 0 s: -1 min; {SAME})."
    )


def test_policies_whose_labels_are_exchanged_by_day_differ_by_noise_at_about_the_nominal_rate() -> (
    None
):
    """On many generated logs: real schedules of two policies, each day's jobs under one label or
    the other by a coin."""
    logs, false = size(60, 120), Counter[str]()
    hosts, policies = one_host(32), (load_policy("fcfs"), load_policy("easy"))
    for seed in range(logs):
        work = prepare(generate_log(jobs=400, procs=32, load=0.9, seed=seed), hosts)
        one, other = (run(work, hosts, policy) for policy in policies)
        day = (work.submit - work.submit[0]) // (86_400 * S)
        is_swapped = (np.random.default_rng(seed).random(int(day.max()) + 1) < 0.5)[day]
        pair = [
            np.where(is_swapped, *starts)
            for starts in ((other.start, one.start), (one.start, other.start))
        ]
        document = compare(
            *(side(by_hand(work, start)) for start in pair),
            ComparedSettings(practical=0.0, parts=()),
        )
        names = ("wait_mean_s", "bounded_slowdown_mean")
        false.update(name for name in names if of(document, name)["finding"] in ("better", "worse"))
    # 5 % of 120 are 6; these logs are of a week, so the rate may be some way above it.
    assert len(false) == 2
    assert max(false.values()) <= size(9, 18)


def test_two_policies_that_differ_are_distinguished_on_nearly_every_log() -> None:
    found, hosts, policies = 0, one_host(32), (load_policy("fcfs"), load_policy("easy"))
    for seed in range(size(10, 20)):
        work = prepare(generate_log(jobs=1500, procs=32, load=0.9, seed=seed), hosts)
        pair = [side(run(work, hosts, policy)) for policy in policies]
        found += (
            of(compare(*pair, ComparedSettings(parts=())), "wait_mean_s")["finding"] == "better"
        )
    assert found >= size(8, 16)


def test_sentences_say_plainly_what_is_noise() -> None:
    record = {
        "words": "Mean wait",
        "unit": "s",
        "a": 100.0,
        "b": 90.0,
        "difference": -10.0,
        "low": -30.0,
        "high": 10.0,
        "relative": -0.1,
        "finding": "noise",
    }

    def said(**changes):
        return sentence(record | changes, "x", "y", 0.95, 0.01)

    assert said() == (
        "Mean wait: no difference between x and y that stands out from noise: y is 10.0 % lower "
        "(x 1.67 min, y 1.5 min: -10 s; 95 % interval -30 s to +10 s)."
    )
    assert "too little to matter, less than 1 %: 10.0 % lower" in said(finding="negligible")
    assert "too few values" in said(finding="unknown", low=None)
    assert "x and y are equal (1.67 min)" in said(finding="equal")
    assert "y is better than x, 10.0 % lower (x 1.67 min, y 1.5 min: -10 s" in said(
        finding="better"
    )
    assert "x is better than y, which is 10.0 % lower" in said(
        finding="worse", is_less_better=False
    )
    assert "no interval" in said(finding="better", low=None)
    assert "y is 10.0 % lower than x (x 1.67 min, y 1.5 min: -10 s)." in said(
        finding="described", low=None
    )
    assert "nothing to compare" in said(difference=None)
    assert (signed(-0.0123, "share"), amount(0.5, "share"), amount(None, "s")) == (
        "-1.23 points",
        "50.00 %",
        "-",
    )
    assert amount(1234.5, "ratio") == "1,234"


def test_the_longest_queue_is_that_of_the_waits() -> None:
    submit, start = np.array([0, 1, 2, 5]), np.array([4, 4, 3, 5])
    work = workload(submit, [1] * 4, [9] * 4, [9] * 4)
    assert longest_queue(by_hand(work, start)) == 3
    # Each waits before the pass in which it starts.
    assert longest_queue(by_hand(work, submit)) == 1


def test_jobs_in_pieces_are_compared_by_all_their_waiting_and_by_what_they_held() -> None:
    one, other = side(in_pieces(7)), side(in_pieces(7))
    unknown = replace(other.schedule, pieces=None, read_piece_count=other.schedule.piece_count)
    bare = replace(other, schedule=unknown, label="bare")
    assert (
        of(compare(one, other, ComparedSettings(parts=())), "wait_mean_s")["a"]
        == measure(in_pieces(7))["wait_mean_s"]
    )
    document = compare(one, bare, ComparedSettings(parts=()))
    assert of(document, "wait_mean_s")["difference"] == 0
    # One bar from start to end holds more.
    assert of(document, "utilisation_submit")["difference"] > 0
    assert [
        note
        for note in document["notes"]
        if "had execution intervals that job rows do not contain" in note
    ]
