"""Admission by a policy in the batch server's core: the answer, what becomes of a refused job, and
broken promises."""

from __future__ import annotations

import contextlib
import random

import numpy as np
import pytest

from qbatch.daemon.core import passes, state_snapshot
from qbatch.daemon.core.state import Account, Core, Ending, Happening, Mail
from qbatch.daemon.settings import Pool, Queue, Settings
from qbatch.daemon.sources import TraceSource
from qbatch.model.machine import Host, one_host
from qbatch.policies.registry import load_policy
from qbatch.simulation.drivers import run
from qbatch.wire import requests
from qbatch.wire.errors import Refusal
from qbatch.wire.records import JobRecord, SubmissionRecord
from qbatch.wire.requests import Spec, Submit
from tests.daemon.core import test_random_policies as commands
from tests.daemon.core.driver import ALICE, ROOT, SECOND, Bench
from tests.harness import size, workload_of
from tests.oracle.naive import Job

BOUNDED = "tests.policies.refusing:Bounded"
SILENT = "tests.policies.refusing:Silent"


def bench_with(
    policy: str = f"{BOUNDED}:most=100", top: str = "", executor: str = "emulated"
) -> Bench:
    queues = (
        '[[queue]]\nname = "batch"\ndefault_walltime = "10:00"\n[[queue]]\nname = "narrow"\n'
        'default_walltime = "10:00"\n'
    )
    return Bench(
        f'executor = "{executor}"\npolicy = "{policy}"\n{top}\n[[pool]]\nhosts = "n1"\ncpus = 4\n'
        f"{queues}max_running = 1\n"
    )


def asks(procs: int, walltime: int, **fields: object) -> dict[str, object]:
    return {
        "resources": {"ncpus": str(procs), "walltime": str(walltime)},
        "runtime": walltime * SECOND,
        **fields,
    }


def refused(bench: Bench, procs: int, walltime: int, **fields: object) -> Refusal:
    with pytest.raises(Refusal) as caught:
        bench.submit(**asks(procs, walltime, **fields))
    return caught.value


def records(bench: Bench, job: str) -> list[str]:
    return [
        effect.kind for effect in bench.outbox if isinstance(effect, Account) and effect.job == job
    ]


def test_a_job_is_taken_in_or_refused_before_the_answer() -> None:
    bench = bench_with()
    first = bench.submit(**asks(4, 60))
    second = bench.submit(**asks(4, 40))
    assert bench.state(first) == "R"  # no pass was made since
    assert bench.core.live(second).promised == 60 * SECOND
    error = refused(bench, 4, 1)
    assert (error.code, error.exit_code, error.pbs % 256) == ("refused-by-policy", 8, 191)
    assert (error.reason, error.numbers) == ("too-late", {"at": 100 * SECOND, "late": SECOND})
    assert "it would end 1 s too late" in str(error)
    assert error.record.numbers == {"at": 100 * SECOND, "late": SECOND}
    bench.check()


def test_a_refused_job_keeps_its_number_and_leaves_the_counts() -> None:
    bench = bench_with()
    error = refused(bench, 1, 101)
    assert error.job == "1.qbatch"
    record = bench.ended["1.qbatch"]
    assert (record.state, record.exit_status, record.started, record.ended) == ("F", -1, None, 0)
    assert record.refused is not None
    assert (record.refused.code, record.refused.said_by) == (
        "too-late",
        "bounded:most=100,order=fcfs",
    )
    assert record.comment == record.refused.text
    assert records(bench, "1.qbatch") == ["Q", "A"]
    assert [effect.text for effect in bench.outbox if isinstance(effect, Account)][-1].endswith(
        "refused=too-late"
    )
    assert not bench.core.jobs
    assert not bench.core.user_jobs["alice"]
    assert not bench.core.queues["batch"].users
    assert bench.core.queues["batch"].total == 0
    assert bench.submit(**asks(1, 10)) == "2.qbatch"
    assert not bench.core.is_dirty


def test_what_the_server_refuses_itself_makes_no_record() -> None:
    bench = bench_with()
    with pytest.raises(Refusal) as caught:
        bench.submit(**asks(5, 10))
    assert caught.value.code == "never-fits"
    assert bench.core.next_sequence == 1


def test_a_job_that_may_not_start_yet_is_judged_when_it_may() -> None:
    bench = bench_with(top='mail_command = ["mail", "{to}"]')
    held = bench.submit(**asks(4, 101, hold="u", mail_users="alice"))
    later = bench.submit(**asks(4, 102, not_before=5 * SECOND))
    child = bench.submit(**asks(4, 103, depend=f"afterany:{held}"))
    assert [bench.state(each) for each in (held, later, child)] == ["H", "W", "H"]
    bench.do(ALICE, requests.Release(jobs=(held,)))
    assert bench.state(held) == "Q"  # the release is answered before the pass, as ever
    bench.make_pass()
    assert bench.ended[held].refused is not None
    assert next(each.text for each in bench.outbox if isinstance(each, Mail)).endswith(
        "1 s too late"
    )
    assert records(bench, held) == ["Q", "A"]
    assert bench.core.find(bench.core.key_of(child)).state.letter == "Q"  # type: ignore[union-attr]
    bench.wait(6)
    assert bench.ended[child].refused is not None
    assert bench.ended[later].refused is not None
    assert not bench.core.jobs


def test_a_job_at_a_run_limit_is_judged_when_it_gets_through() -> None:
    bench = bench_with()
    first = bench.submit(**asks(1, 50, queue="narrow"))
    second = bench.submit(**asks(1, 99, queue="narrow"))
    third = bench.submit(**asks(1, 101, queue="narrow"))
    bench.wait(50)
    assert [bench.state(each) for each in (first, second, third)] == ["F", "R", "Q"]
    bench.wait(99)
    assert bench.ended[third].refused is not None


def test_a_job_for_a_closed_host_is_judged_when_it_opens() -> None:
    bench = bench_with()
    bench.do(ROOT, requests.HostControl(hosts=("n1",), action="drain"))
    job = bench.submit(**asks(1, 101))
    bench.make_pass()
    assert bench.state(job) == "Q"
    bench.do(ROOT, requests.HostControl(hosts=("n1",), action="resume"))
    bench.make_pass()
    assert bench.ended[job].refused is not None


def test_an_array_is_refused_if_all_of_it_is() -> None:
    bench = bench_with()
    error = refused(bench, 4, 101, array="1-3")
    assert error.job == "1[].qbatch"
    whole = bench.ended["1[].qbatch"]
    assert whole.refused is not None
    assert whole.state == "F"
    assert records(bench, "1[].qbatch") == ["Q", "A"]
    assert [bench.ended[f"1[{place}].qbatch"].refused is not None for place in (1, 2, 3)] == [
        True
    ] * 3
    assert not bench.core.jobs
    bench.check()


def test_of_an_array_that_fits_in_part_the_rest_ends_as_refused() -> None:
    bench = bench_with()
    array = bench.submit(**asks(4, 40, array="1-3"))
    letters = {index: each.state.letter for index, each in bench.core.arrays[1].members.items()}
    assert letters == {1: "R", 2: "Q", 3: "X"}
    bench.check()
    bench.wait(80)
    assert bench.ended[array].refused is None
    assert bench.ended[array].exit_status == 1
    assert bench.ended["1[3].qbatch"].refused is not None


def test_a_key_is_remembered_with_the_job_that_was_taken_and_forgotten_with_one_that_was_not() -> (
    None
):
    bench = bench_with()
    long, short = (Submit(spec=Spec(script="x\n", **asks(1, each)), key="k") for each in (101, 10))  # type: ignore[arg-type]
    with pytest.raises(Refusal):
        bench.do(ALICE, long)
    taken = bench.do(ALICE, short)
    assert taken == bench.do(ALICE, short) == SubmissionRecord(job="2.qbatch")


def test_a_dry_run_shows_the_quote_and_leaves_nothing() -> None:
    bench = bench_with()
    bench.submit(**asks(4, 60))
    before = state_snapshot.dump(bench.core)
    said = bench.do(ALICE, Submit(spec=Spec(argv=("x",), **asks(4, 40)), is_dry_run=True))  # type: ignore[arg-type]
    assert isinstance(said, SubmissionRecord)
    assert said.quote is not None
    assert (said.quote.start, said.quote.end) == (60 * SECOND, 100 * SECOND)
    assert said.comment.endswith("; bounded:most=100,order=fcfs would accept it")
    with pytest.raises(Refusal) as caught:
        bench.do(ALICE, Submit(spec=Spec(argv=("x",), **asks(4, 41)), is_dry_run=True))  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.reason, caught.value.job) == (
        "refused-by-policy",
        "too-late",
        "",
    )
    held = bench.do(ALICE, Submit(spec=Spec(argv=("x",), **asks(4, 41, hold="u")), is_dry_run=True))  # type: ignore[arg-type]
    assert isinstance(held, SubmissionRecord)
    assert held.quote is None
    assert state_snapshot.dump(bench.core) == before


def test_a_dry_run_of_a_policy_without_quotes_cannot_say() -> None:
    said = bench_with(SILENT).do(
        ALICE, Submit(spec=Spec(argv=("x",), **asks(3, 10)), is_dry_run=True)
    )  # type: ignore[arg-type]
    assert isinstance(said, SubmissionRecord)
    assert said.quote is None


def test_a_policy_that_never_refuses_is_not_asked_before_the_answer() -> None:
    bench = bench_with("fcfs")
    job = bench.submit(**asks(1, 10))
    assert bench.core.find(bench.core.key_of(job)).is_pending  # type: ignore[union-attr]
    assert bench.core.is_dirty


def test_the_pass_before_the_answer_takes_in_what_is_due_at_its_instant() -> None:
    bench = bench_with()
    first = bench.submit(**asks(4, 60))
    bench.now = 60 * SECOND  # its end is due, and was not handled yet
    second = bench.submit(**asks(4, 100))
    assert bench.ended[first].exit_status == 0
    assert bench.state(second) == "R"


def test_a_move_or_a_change_is_judged_by_the_next_pass() -> None:
    bench = bench_with()
    bench.submit(**asks(4, 10))
    job = bench.submit(**asks(4, 20))
    bench.do(
        ALICE, requests.Alter(jobs=(job,), changes=requests.Changes(resources={"walltime": "95"}))
    )
    bench.make_pass()
    assert bench.ended[job].refused is not None
    other = bench.submit(**asks(4, 20))
    bench.do(ALICE, requests.Move(jobs=(other,), destination="narrow"))
    bench.make_pass()
    assert bench.state(other) == "Q"
    assert bench.core.live(other).promised == 10 * SECOND


def test_a_broken_promise_is_announced_once_and_kept_in_the_record() -> None:
    bench = bench_with(f"{BOUNDED}:most=300,order=sjf")
    bench.submit(**asks(4, 50))
    long = bench.submit(**asks(4, 40))
    assert bench.core.live(long).promised == 50 * SECOND
    bench.submit(**asks(4, 30))
    job = bench.core.live(long)
    assert job.promised == 80 * SECOND
    assert job.broken == ((0, 50 * SECOND, "it starts 30000000 us later"),)
    assert job.comment == "the promised start is lost: it starts 30000000 us later"
    bench.wait(1)
    happenings = [
        each
        for each in bench.outbox
        if isinstance(each, Happening) and each.kind == "promise-broken"
    ]
    assert [(each.key, each.text) for each in happenings] == [
        (job.key, "it starts 30000000 us later")
    ]
    again = state_snapshot.load(state_snapshot.dump(bench.core), bench.settings, load_policy)
    assert again.live(long).broken == job.broken
    assert again.pools[0].engine.promise_to(job.row) == 80 * SECOND
    bench.wait(200)
    assert bench.ended[long].broken == job.broken
    assert bench.ended[long].started == 80 * SECOND


def test_a_record_keeps_the_latest_of_many_promises_that_were_taken_back() -> None:
    bench = bench_with("tests.policies.refusing:Wavering")
    job = bench.core.live(bench.submit(**asks(4, 50)))
    bench.wait(100)
    first = job.broken[0]
    assert len(job.broken) == passes.MOST_BROKEN
    bench.wait(50)
    assert len(job.broken) == passes.MOST_BROKEN
    assert job.broken[0] == (
        first[0] + 50 * SECOND,
        first[1] + 50 * SECOND,
        f"it wavers at {first[0] + 50 * SECOND} us",
    )


def test_a_loss_without_a_decision_is_seen_when_the_plan_cannot_be_kept() -> None:
    """A job outlives its estimate (a user suspends it): the next job's promise is broken a second
    later at most."""
    bench = bench_with()
    first, second = bench.submit(**asks(4, 50)), bench.submit(**asks(4, 40))
    bench.wait(10)
    bench.do(ROOT, requests.Signal(jobs=(first,), signal="suspend"))
    bench.wait(39)
    assert bench.core.live(second).broken == ()
    bench.wait(1)
    at, promised, _ = bench.core.live(second).broken[0]
    assert (at, promised) == (50 * SECOND, 50 * SECOND)
    assert bench.state(second) == "Q"


def _wait(bench: Bench, draw: random.Random) -> None:
    bench.wait(draw.randrange(20))


POLICIES = (f"{BOUNDED}:most=60", f"{BOUNDED}:most=200,order=sjf", SILENT, "easy")


@pytest.mark.parametrize("executor", ["emulated", "process"])
def test_random_commands_keep_the_invariants_and_a_crash_anywhere_changes_nothing(
    executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "POLICIES", POLICIES)
    refusals = answers = breaks = 0
    for seed in range(size(25, 200)):
        draw = random.Random(seed)
        bench = bench_with(draw.choice(POLICIES), executor=executor)
        cuts = sorted(draw.randrange(100) for _ in range(3))
        snapshots = []
        for step in range(100):
            do = draw.choice((commands.submit, commands.submit, commands.command, _wait))
            try:
                do(bench, draw)
            except Refusal as error:
                answers += error.code == "refused-by-policy"
            if executor == "process" and step % 3 == 0:
                commands.end_some(bench, draw)
            bench.check()
            if step in cuts:
                snapshots.append((state_snapshot.dump(bench.core), len(bench.journal)))
        whole = state_snapshot.dump(bench.core)
        assert state_snapshot.dump(bench.replayed(bench.journal)) == whole, seed
        for data, place in snapshots:
            assert state_snapshot.dump(bench.replayed(bench.journal[place:], data)) == whole, seed
        refusals += sum(each.refused is not None for each in bench.ended.values())
        breaks += sum(len(each.broken) for each in bench.ended.values())
        with contextlib.suppress(Refusal):
            commands.let_all_end(bench, draw)
        bench.check()
    assert refusals > answers > 50
    assert breaks > 10


@pytest.mark.parametrize("policy", [f"{BOUNDED}:most=60", f"{BOUNDED}:most=90,order=sjf", SILENT])
def test_a_log_that_arrives_by_itself_is_admitted_as_in_the_replay(policy: str) -> None:
    rejected = broken = 0
    for seed in range(size(30, 80)):
        draw = random.Random(seed)
        jobs, at = [], 0
        for number in range(40):
            at += draw.choice((0, 0, 1, 5, 20)) * SECOND
            estimate = draw.randrange(0, 40) * SECOND
            jobs.append(
                Job(number, at, draw.randrange(1, 5), estimate, draw.randrange(estimate + 1))
            )
        work = workload_of(jobs, 4)
        schedule = run(work, one_host(4), load_policy(policy), is_audited=True)
        ended = _lived(work, policy)
        assert len(ended) == len(jobs)
        for row in range(len(jobs)):
            record = ended[row + 1]
            if record.refused is None:
                assert (record.started, record.ended) == (schedule.start[row], schedule.end[row]), (
                    seed,
                    row,
                )
            else:
                assert schedule.start[row] < 0
        reasons = {each.row: (each.at, each.code, each.text) for each in schedule.rejected}
        assert reasons == {
            number - 1: (record.ended, record.refused.code, record.refused.text)
            for number, record in ended.items()
            if record.refused is not None
        }
        counts = np.zeros(len(jobs), np.int64) if schedule.broken is None else schedule.broken
        assert counts.tolist() == [len(ended[row + 1].broken) for row in range(len(jobs))], seed
        rejected, broken = rejected + len(reasons), broken + int(counts.sum())
    assert rejected > 100
    assert (broken > 0) == ("sjf" in policy)


@pytest.mark.parametrize("policy", [f"{BOUNDED}:most=60", f"{BOUNDED}:most=90,order=sjf", SILENT])
def test_answers_before_the_pass_of_others_are_the_decisions_of_the_replay(policy: str) -> None:
    """Jobs that come one by one, many at instants at which others end or timers are due."""
    answers = 0
    for seed in range(size(25, 60)):
        draw = random.Random(seed)
        jobs, at = [], 0
        for number in range(40):
            at += draw.choice((1, 2, 5, 20)) * SECOND
            estimate = draw.randrange(1, 40) * SECOND
            run_time = draw.choice(
                (
                    estimate,
                    draw.randrange(estimate + 1),
                    draw.randrange(estimate // SECOND + 1) * SECOND,
                )
            )
            jobs.append(Job(number, at, draw.randrange(1, 5), estimate, run_time))
        schedule = run(workload_of(jobs, 4), one_host(4), load_policy(policy), is_audited=True)
        bench, names = bench_with(policy), []
        for job in jobs:
            bench.wait((job.submit - 1 - bench.now) / SECOND)
            bench.now = job.submit
            try:
                names.append(
                    bench.submit(**asks(job.procs, job.estimate // SECOND) | {"runtime": job.run})
                )
            except Refusal as error:
                names.append(error.job)
                answers += 1
        bench.wait(10_000)
        ended = [bench.ended[name] for name in names]
        for row, record in enumerate(ended):
            if record.refused is None:
                assert (record.started, record.ended) == (schedule.start[row], schedule.end[row]), (
                    seed,
                    row,
                )
        assert [each.row for each in schedule.rejected] == [
            row for row, each in enumerate(ended) if each.refused is not None
        ]
        counts = np.zeros(len(jobs), np.int64) if schedule.broken is None else schedule.broken
        assert counts.tolist() == [len(record.broken) for record in ended], seed
    assert answers > 50


def _lived(work: object, policy: str) -> dict[int, JobRecord]:
    pool = Pool(name="main", hosts=(Host("machine", 4),), policy=policy, spans=True)
    core = Core(
        Settings(executor="emulated", pools=(pool,), queues=(Queue(name="batch"),)), load_policy
    )
    feed = TraceSource(work, 0)
    feed.attach(core)
    ended = {}
    while instants := [
        each for each in (passes.next_due(core), feed.next_instant()) if each is not None
    ]:
        at = max(min(instants), core.now)
        feed.take(core, at)
        passes.advance(core, at)
        for effect in core.take_effects():
            if isinstance(effect, Ending):
                ended[int(effect.record.extra["log_number"])] = effect.record
    return ended
