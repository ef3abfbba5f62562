"""Deadlines in the batch server's core: answers, quotes, changes, arrays and dependents, lost
hosts, crashes, the replay."""

from __future__ import annotations

import random

import pytest

from qbatch.daemon.core import passes, state_snapshot
from qbatch.daemon.core.accounting import text_of
from qbatch.daemon.core.state import Account, Core, Ending, Happening
from qbatch.daemon.settings import Pool, Queue, Settings
from qbatch.daemon.sources import TraceSource
from qbatch.model.machine import Host, one_host
from qbatch.policies.registry import load_policy
from qbatch.simulation.drivers import run
from qbatch.wire import requests
from qbatch.wire.errors import Refusal
from qbatch.wire.records import SubmissionRecord
from qbatch.wire.requests import Changes, Spec, Submit
from tests.daemon.core.driver import ALICE, ROOT, SECOND, Bench
from tests.policies.test_deadlines import with_deadlines

CONFIG = """executor = "{executor}"
policy = "{policy}"
[[pool]]
hosts = "n[1-2]"
cpus = 4
spans = true
[[pool]]
name = "other"
hosts = "m1"
cpus = 4
policy = "easy"
[[queue]]
name = "batch"
[[queue]]
name = "plain"
pool = "other"
[[queue]]
name = "narrow"
max_running = 1
"""


def bench_with(policy: str = "qops", executor: str = "emulated") -> Bench:
    return Bench(CONFIG.format(policy=policy, executor=executor))


def asks(
    procs: int, walltime: int, deadline: int | str | None = None, **fields: object
) -> dict[str, object]:
    resources = {"ncpus": str(procs), "walltime": str(walltime)}
    if deadline is not None:
        resources["deadline"] = f"+{deadline}" if isinstance(deadline, int) else deadline
    return {"resources": resources, "runtime": walltime * SECOND, **fields}


def refused(bench: Bench, *asked: object, **fields: object) -> Refusal:
    with pytest.raises(Refusal) as caught:
        bench.submit(**asks(*asked, **fields))  # type: ignore[arg-type]
    return caught.value


def live(bench: Bench, job: str):
    return bench.core.live(job)


def test_a_deadline_is_promised_or_refused_with_the_earliest_that_would_be_accepted() -> None:
    bench = bench_with()
    bench.submit(**asks(8, 100))
    accepted = bench.submit(**asks(8, 50, 200))
    assert (live(bench, accepted).deadline, live(bench, accepted).promised) == (
        200 * SECOND,
        150 * SECOND,
    )
    error = refused(bench, 8, 80, 190)
    assert (error.code, error.reason, error.exit_code) == (
        "refused-by-policy",
        "deadline-not-kept",
        8,
    )
    earliest = error.numbers["earliest_deadline"]
    assert "the earliest deadline that would be accepted now is 1970-01-01T00:03:50+00:00" in str(
        error
    )
    assert earliest == 230 * SECOND
    assert refused(bench, 8, 80, earliest // SECOND - 1).reason == "deadline-not-kept"
    bench.submit(**asks(8, 80, earliest // SECOND))
    bench.wait(400)
    ends = [record.ended for record in bench.ended.values() if record.exit_status == 0]
    assert ends == [100 * SECOND, 150 * SECOND, 230 * SECOND]
    bench.check()


def test_what_nothing_could_keep_is_refused_before_it_has_a_number() -> None:
    bench = bench_with()
    for deadline, text in (
        (9, "there are 00:00:09 until then"),
        ("1969-12-31T00:00Z", "lies too far away"),
        ("soon", "is no deadline"),
        ("2026-01-01T00:00", "has no offset"),
        ("+99999999999", "more than a hundred years"),
        ("+", "is no time"),
    ):
        assert text in str(refused(bench, 1, 10, deadline)), deadline
    bench.now = 100 * SECOND
    assert "it is past" in str(refused(bench, 1, 10, "1970-01-01T00:00:50Z"))
    assert bench.core.next_sequence == 1
    error = refused(bench, 1, 10, 100, queue="plain")
    assert (error.reason, "takes no deadlines" in str(error)) == ("no-deadlines", True)


def test_a_quote_is_what_would_be_and_leaves_nothing() -> None:
    bench = bench_with()
    bench.submit(**asks(8, 100))
    asked = Submit(spec=Spec(script="x", **asks(4, 60)), is_dry_run=True)  # type: ignore[arg-type]
    said = bench.do(ALICE, asked)
    assert isinstance(said, SubmissionRecord)
    assert said.quote is not None
    assert (said.quote.start, said.quote.end, said.quote.earliest_deadline) == tuple(
        each * SECOND for each in (100, 160, 160)
    )
    assert said.quote.price is not None
    assert bench.core.next_sequence == 2
    late = Submit(spec=Spec(script="x", **asks(4, 60, 159)), is_dry_run=True)  # type: ignore[arg-type]
    with pytest.raises(
        Refusal, match=r"the earliest deadline that would be accepted now is 1970-01-01T00:02:40"
    ):
        bench.do(ALICE, late)


def test_the_record_and_the_accounting_show_what_was_promised() -> None:
    bench = bench_with()
    bench.submit(**asks(8, 100))
    job = bench.submit(**asks(8, 50, 200))
    bench.wait(400)
    record = bench.ended[job]
    assert (record.deadline, record.promised) == (200 * SECOND, 150 * SECOND)
    assert record.price == round(8 * 50 / 3600 * (1 + 100 / 86400) * 1e6)
    (ended,) = [
        text_of(each)
        for each in bench.outbox
        if isinstance(each, Account) and each.job == job and each.kind == "E"
    ]
    assert f" deadline=200 price=0.{record.price:06d} " in ended


def alter(bench: Bench, job: str, deadline: int) -> str:
    changes = Changes(resources={"deadline": f"+{deadline}"})
    (outcome,) = bench.do(ALICE, requests.Alter(jobs=(job,), changes=changes)).outcomes  # type: ignore[attr-defined]
    return outcome.error.reason if outcome.error is not None else ""


def test_another_deadline_is_granted_or_all_is_left_as_it_was() -> None:
    bench = bench_with()
    bench.submit(**asks(8, 100))
    job = bench.submit(**asks(8, 50, 170))
    other = bench.submit(**asks(8, 50, 260))
    assert alter(bench, other, 199) == "deadline-not-kept"
    assert (live(bench, other).deadline, live(bench, other).promised) == (
        260 * SECOND,
        210 * SECOND,
    )
    assert live(bench, other).spec.resources["deadline"] == "+260"
    assert alter(bench, other, 20) == "deadline-too-soon"
    assert alter(bench, job, 400) == ""
    assert live(bench, job).promised == 350 * SECOND
    assert alter(bench, other, 150) == ""
    bench.wait(500)
    assert sorted((bench.ended[other].ended or 0, bench.ended[job].ended or 0)) == [
        150 * SECOND,
        200 * SECOND,
    ]
    assert (bench.ended[other].ended or 0) <= 150 * SECOND
    bench.check()


def test_a_job_that_cannot_start_yet_is_judged_when_it_can() -> None:
    bench = bench_with()
    held = bench.submit(**asks(8, 50, 100, hold="u"))
    assert live(bench, held).promised is None
    bench.submit(**asks(8, 80))
    bench.do(ROOT, requests.Release(jobs=(held,), kinds="u"))
    bench.wait(1)
    assert bench.ended[held].refused is not None
    after = bench.submit(**asks(8, 20, 200, depend=f"afterok:{2}"))
    assert live(bench, after).promised is None
    bench.wait(300)
    assert bench.ended[after].exit_status == 0


def test_the_jobs_of_an_array_share_a_deadline_and_are_judged_one_by_one() -> None:
    bench = bench_with()
    array = bench.submit(**asks(8, 50, 120, array="1-3"))
    bench.wait(300)
    fates = {
        name: record.exit_status
        for name, record in bench.ended.items()
        if "[" in name and "[]" not in name
    }
    assert sorted(fates.values(), key=str) == [-1, 0, 0]
    assert array == "1[].qbatch"
    bench.check()


def promised_of(bench: Bench, array: str) -> dict[str, tuple[int | None, int | None]]:
    """Return deadline and promise of the jobs of an array that have not ended."""
    core = bench.core
    return {
        core.id_of(job.key): (job.deadline, job.promised)
        for job in core.members(live(bench, array))
        if not job.is_array
    }


def test_another_deadline_of_an_array_is_for_all_its_waiting_jobs_or_for_none() -> None:
    bench = bench_with()
    bench.submit(**asks(8, 100))
    array = bench.submit(**asks(8, 50, 400, array="1-3"))
    before = promised_of(bench, array)
    assert list(before.values()) == [(400 * SECOND, 350 * SECOND)] * 3
    assert alter(bench, array, 249) == "deadline-not-kept"
    assert promised_of(bench, array) == before
    assert live(bench, array).spec.resources["deadline"] == "+400"
    assert alter(bench, array, 250) == ""
    assert list(promised_of(bench, array).values()) == [(250 * SECOND, 200 * SECOND)] * 3
    assert refused(bench, 8, 10, 250).reason == "deadline-not-kept"
    bench.wait(300)
    assert max(record.ended or 0 for record in bench.ended.values()) == 250 * SECOND
    bench.check()


def test_a_job_that_gets_another_deadline_keeps_its_place_at_a_run_limit() -> None:
    bench = bench_with()
    bench.submit(**asks(8, 100))
    array = bench.submit(**asks(8, 50, 400, array="1-3", queue="narrow"))
    first = [
        name for name, (_, promised) in promised_of(bench, array).items() if promised is not None
    ]
    assert len(first) == 1
    assert alter(bench, array, 149) == "deadline-not-kept"
    assert alter(bench, array, 300) == ""
    recorded = promised_of(bench, array)
    assert {deadline for deadline, _ in recorded.values()} == {300 * SECOND}
    assert [name for name, (_, promised) in recorded.items() if promised is not None] == first
    bench.wait(400)
    assert sorted(record.ended or 0 for record in bench.ended.values())[-1] == 250 * SECOND
    bench.check()


def test_the_jobs_of_an_array_that_run_keep_their_deadline_when_the_others_get_another() -> None:
    bench = bench_with()
    array = bench.submit(**asks(8, 50, 400, array="1-3"))
    bench.wait(10)
    running = next(one for one in bench.core.members(live(bench, array)) if one.holds_hosts)
    before = promised_of(bench, array)
    assert alter(bench, array, 139) == "deadline-not-kept"
    assert promised_of(bench, array) == before
    assert alter(bench, array, 140) == ""
    name = bench.core.id_of(running.key)
    assert running.deadline == 400 * SECOND
    assert {
        deadline for other, (deadline, _) in promised_of(bench, array).items() if other != name
    } == {150 * SECOND}
    job = bench.submit(**asks(8, 50, 400))
    bench.wait(145)
    (outcome,) = bench.do(
        ALICE, requests.Alter(jobs=(job,), changes=Changes(resources={"deadline": "+900"}))
    ).outcomes  # type: ignore[attr-defined]
    assert outcome.error is not None
    assert outcome.error.code == "modify-running"
    bench.check()


def test_random_arrays_get_another_deadline_whole_or_not_at_all() -> None:
    counts = {"granted": 0, "deadline-not-kept": 0}
    for seed in range(60):
        draw, bench = (
            random.Random(seed),
            bench_with(random.Random(seed).choice(("qops", "msb", "mrt"))),
        )
        bench.submit(**asks(8, 60))
        for _ in range(draw.randrange(4)):
            bench.submit(**asks(draw.randrange(1, 9), draw.randrange(1, 60), 2000))
        fields = {"array": "1-4", "queue": draw.choice(("batch", "batch", "narrow"))}
        array = bench.submit(**asks(draw.randrange(1, 9), 40, 2000, **fields))
        bench.wait(draw.randrange(50))
        for _ in range(3):
            before, wanted = promised_of(bench, array), draw.randrange(60, 600)
            said = alter(bench, array, wanted)
            after = promised_of(bench, array)
            counts[said or "granted"] += 1
            if said:
                assert after == before, seed
            else:
                assert after.keys() == before.keys(), seed  # no job was refused
                assert {deadline for deadline, _ in after.values()} == {
                    bench.now + wanted * SECOND
                }, seed
                assert [promised is None for _, promised in after.values()] == [
                    promised is None for _, promised in before.values()
                ], seed
            bench.check()
    assert min(counts.values()) > 10


def test_an_accepted_job_that_loses_its_host_keeps_its_deadline_and_is_not_refused() -> None:
    bench = bench_with(executor="emulated")
    job = bench.submit(**asks(8, 50, 60))
    bench.wait(30)
    bench.do(ROOT, requests.HostControl(hosts=("n1",), action="down"))
    bench.do(ROOT, requests.HostControl(hosts=("n1",), action="resume"))
    bench.wait(1)
    again = live(bench, job)
    assert (again.deadline, again.attempts) == (60 * SECOND, 2)
    assert again.broken
    bench.wait(100)
    assert bench.ended[job].exit_status == 0
    bench.check()


def test_a_job_that_outlives_its_walltime_breaks_each_promise_once() -> None:
    bench = bench_with()
    first = bench.submit(**asks(8, 600))
    late, never_late = bench.submit(**asks(8, 600, 1300)), bench.submit(**asks(8, 600, 9000))
    bench.wait(10)
    bench.do(ROOT, requests.Signal(jobs=(first,), signal="suspend"))  # to the policy it runs on
    bench.wait(600 + 100 + 120)
    happenings = [
        each
        for each in bench.outbox
        if isinstance(each, Happening) and each.kind == "promise-broken"
    ]
    job = bench.core.live(late)
    assert [each.key for each in happenings] == [job.key]
    assert job.broken == (
        (
            700 * SECOND,
            700 * SECOND,
            "it can start only 1 s after the latest start that it was promised",
        ),
    )
    assert job.promised is None
    assert bench.core.live(never_late).promised == 8400 * SECOND
    assert state_snapshot.dump(bench.replayed(bench.journal)) == state_snapshot.dump(bench.core)
    bench.do(ROOT, requests.Signal(jobs=(first,), signal="resume"))
    bench.wait(700)
    job = bench.core.live(late)
    assert job.promised == job.present.started
    assert len(job.broken) == 1
    assert [
        each
        for each in bench.outbox
        if isinstance(each, Happening) and each.kind == "promise-broken"
    ] == happenings


def test_the_price_and_the_promise_survive_a_crash() -> None:
    bench = bench_with()
    bench.submit(**asks(8, 100))
    job = bench.submit(**asks(8, 50, 200))
    bench.wait(10)
    again = bench.replayed(bench.journal)
    before, after = live(bench, job), again.live(job)
    assert (after.deadline, after.promised, after.price) == (
        before.deadline,
        before.promised,
        before.price,
    )


@pytest.mark.parametrize(
    "policy", ["qops", "msb", "mrt", "slack", "qops:others=reject,placing=head"]
)
def test_the_core_takes_the_decisions_of_the_replay(policy: str) -> None:
    for seed in range(12):
        work = with_deadlines(seed)
        schedule = run(work, one_host(8), load_policy(policy))
        pool = Pool(name="main", hosts=(Host("machine", 8),), policy=policy, spans=True)
        core = Core(
            Settings(executor="emulated", pools=(pool,), queues=(Queue(name="batch"),)), load_policy
        )
        trace = TraceSource(work, 0)
        trace.attach(core)
        ended = {}
        while instants := [
            each for each in (passes.next_due(core), trace.next_instant()) if each is not None
        ]:
            at = max(min(instants), core.now)
            trace.take(core, at)
            passes.advance(core, at)
            for effect in core.take_effects():
                if isinstance(effect, Ending):
                    ended[int(effect.record.id.partition(".")[0])] = effect.record
        for row, number in enumerate(work.number.tolist()):
            record = ended[number]
            start = -1 if record.started is None else record.started
            assert start == schedule.start[row], (seed, number)
            assert (record.refused is None) == bool(schedule.ran[row]), (seed, number)


def test_a_job_with_a_deadline_moves_only_where_it_is_kept() -> None:
    bench = bench_with()
    bench.submit(**asks(8, 100))
    job = bench.submit(**asks(4, 50, 200))
    (outcome,) = bench.do(ROOT, requests.Move(jobs=(job,), destination="plain")).outcomes  # type: ignore[attr-defined]
    assert outcome.error is not None
    assert outcome.error.reason == "no-deadlines"
    assert live(bench, job).queue == "batch"
    bench.check()


def test_random_lives_keep_the_invariants_and_every_promise_of_bounded_jobs() -> None:
    for seed in range(15):
        draw, bench = (
            random.Random(seed),
            bench_with(random.Random(seed).choice(("qops", "msb", "mrt"))),
        )
        jobs: list[str] = []
        for _ in range(40):
            kind = draw.randrange(8)
            try:
                if kind < 5:
                    walltime = draw.randrange(1, 60)
                    asked = asks(
                        draw.randrange(1, 9),
                        walltime,
                        draw.choice((None, walltime + draw.randrange(300))),
                    )
                    asked["runtime"] = draw.randrange(0, walltime + 1) * SECOND
                    jobs.append(bench.submit(**asked))
                elif kind == 5 and jobs:
                    bench.do(ROOT, requests.Delete(jobs=(draw.choice(jobs),)))
                elif kind == 6 and jobs:
                    alter(bench, draw.choice(jobs), draw.randrange(1, 400))
                else:
                    bench.wait(draw.randrange(0, 40))
            except Refusal:
                pass
            bench.check()
        bench.wait(10_000)
        for record in bench.ended.values():
            if record.exit_status == 0 and record.deadline is not None:
                assert record.ended is not None
                assert record.ended <= record.deadline, (seed, record.id)
                assert not record.broken, (seed, record.id)
