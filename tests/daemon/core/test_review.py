"""What a hostile review of the core found, one defect a test."""

from __future__ import annotations

import pytest

from qbatch.daemon.core import run_limits, state_snapshot, steps
from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Account, Mail, RunLimit, Stop
from qbatch.daemon.executors.attempt import Ended
from qbatch.wire import requests
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes
from tests.daemon.core.driver import ALICE, BOB, EMULATED, ROOT, SECOND, Bench

PROCESS = EMULATED.replace('"emulated"', '"process"')
ALL = {"select": "4:ncpus=4"}


@pytest.fixture
def bench() -> Bench:
    return Bench()


def job_of(bench: Bench, name: str) -> BatchJob:
    found = bench.core.find(bench.core.key_of(name))
    assert found is not None
    return found


def code_of(said: object) -> str:
    """The code of the one error, or nothing."""
    assert isinstance(said, Outcomes)
    error = said.outcomes[0].error
    return error.code if error is not None else ""


def alter(bench: Bench, job: str, actor: object = ALICE, **changes: object) -> str:
    request = requests.Alter(jobs=(job,), changes=requests.Changes(**changes))  # type: ignore[arg-type]
    return code_of(bench.do(actor, request))  # type: ignore[arg-type]


def blocked(bench: Bench, seconds: int = 100) -> str:
    """A job on all hosts, which runs."""
    job = bench.submit(f"sleep {seconds}\n", resources=ALL)
    bench.make_pass()
    return job


def test_the_limit_of_a_user_without_jobs_is_reported() -> None:
    bench = Bench("max_jobs_per_user = 5\n" + EMULATED)
    with pytest.raises(Refusal, match="alice has 0"):
        bench.submit(array="1-10")


def test_a_user_lifts_only_the_hold_of_the_user(bench: Bench) -> None:
    job = bench.submit()
    bench.do(ROOT, requests.Hold(jobs=(job,), kinds="so"))
    for hold, bits in (("u", 7), ("n", 6)):
        assert alter(bench, job, hold=hold) == ""
        assert (job_of(bench, job).hold, bench.state(job)) == (bits, "H")
    assert alter(bench, job, ROOT, hold="n") == ""
    assert (job_of(bench, job).hold, bench.state(job)) == (0, "Q")


def test_what_is_deleted_stays_deleted_when_its_host_goes_down_or_somebody_reruns_it() -> None:
    bench = Bench(PROCESS)
    job = bench.submit()
    bench.make_pass()
    bench.do(ALICE, requests.Delete(jobs=(job,)))
    assert bench.state(job) == "E"
    assert code_of(bench.do(ALICE, requests.Rerun(jobs=(job,)))) == "bad-state"
    bench.do(ROOT, requests.HostControl(hosts=("n1",), action="down"))
    assert bench.outbox[-2:].count(Stop("1.1", 0)) == 1
    bench.report(Ended("1.1", 271, bench.core.now))
    bench.make_pass()
    assert bench.state(job) == "F"
    assert bench.core.jobs == {}


def test_a_job_of_no_length_that_is_lost_again_and_again_does_not_stop_the_clock(
    bench: Bench,
) -> None:
    bench.do(ROOT, requests.Fault(kind="job-lost", count=-1))
    job = bench.submit("true\n", runtime=0)
    bench.make_pass()
    assert (bench.state(job), job_of(bench, job).not_before) == ("W", SECOND)
    bench.wait(3)
    assert job_of(bench, job).attempts == 4
    bench.do(ROOT, requests.Fault(kind="clear"))
    bench.wait(2)
    assert bench.ended[job].exit_status == 0


def test_altering_refuses_before_it_changes_anything(bench: Bench) -> None:
    parent = blocked(bench)
    job = bench.submit(depend=f"afterok:{parent}")
    array = bench.submit(array="1-3%1")
    child = bench.submit(depend=f"afterany:{job}")
    before = state_snapshot.dump(bench.core)
    for depend in (
        f"afterok:{job}",
        f"before:{job}",
        f"afterany:{child}",
    ):
        assert alter(bench, job, depend=depend, name="new", priority=5) == "bad-dependency", depend
    assert alter(bench, array, slot_limit=2, resources={"ncpus": "99"}) == "never-fits"
    assert alter(bench, array, slot_limit=2, depend=f"afterok:{array}") == "bad-dependency"
    bench.core.take_effects()
    assert state_snapshot.dump(bench.core) == before


def test_a_job_that_is_altered_to_wait_for_what_cannot_be_met_ends_at_once(bench: Bench) -> None:
    failed = bench.submit("sleep 1\nexit 1\n")
    bench.wait(5)
    parent = blocked(bench)
    for depend in (f"afterok:{failed}", "afterok:99"):
        job = bench.submit(depend=f"afterok:{parent}")
        assert alter(bench, job, depend=depend) == ""
        assert bench.state(job) == "F"
        assert "can never be met" in bench.ended[job].comment
    bench.check()


def test_jobs_that_would_wait_for_each_other_are_refused(bench: Bench) -> None:
    first = bench.submit(hold="u")
    second = bench.submit(depend=f"afterok:{first}")
    array = bench.submit(array="1-2", depend=f"afterok:{second}")
    for depend in (
        f"afterok:{first},before:{first}",
        f"afterany:{second},beforeany:{first}",
        f"afterany:3[2],beforeany:{first}",
        f"afterany:{array},beforeany:{first}",
        f"before:{array},afterany:3[1]",
    ):
        with pytest.raises(Refusal, match="wait for each other"):
            bench.submit(depend=depend)
    assert alter(bench, first, depend=f"afterany:{array}") == "bad-dependency"
    assert alter(bench, first, depend="afterany:3[1]") == "bad-dependency"
    assert len(bench.core.jobs) == 3
    last = bench.submit(depend=f"afterany:{first},before:{array}")
    bench.do(ALICE, requests.Release(jobs=(first,)))
    bench.wait(100)
    assert bench.core.jobs == {}
    assert bench.ended[last].exit_status == 0


def test_the_letter_of_an_array_follows_its_jobs(bench: Bench) -> None:
    array = bench.submit("sleep 100\n", array="1-3", hold="u")
    assert bench.state(array) == "H"
    child = bench.submit(depend=f"after:{array}")
    bench.do(ALICE, requests.Release(jobs=("1[2]",)))
    assert bench.state(array) == "Q"
    bench.make_pass()
    assert (bench.state(array), bench.state("1[1].qbatch")) == ("B", "H")
    bench.wait(1)
    assert bench.state(child) == "R"
    bench.do(ALICE, requests.Rerun(jobs=("1[2]",)))
    assert bench.state(array) == "B"
    later = bench.submit(array="1-2", not_before=bench.now + 50 * SECOND)
    assert bench.state(later) == "W"
    after_later = bench.submit(depend=f"after:{later}")
    bench.do(ALICE, requests.Hold(jobs=(later,)))
    assert bench.state(later) == "H"
    bench.do(ALICE, requests.Release(jobs=(later,)))
    assert bench.state(later) == "W"
    bench.wait(51)
    assert (bench.state(later), bench.state(after_later)) == ("B", "R")


def test_an_array_that_others_make_wait_is_held(bench: Bench) -> None:
    blocked(bench)
    array = bench.submit(array="1-3")
    other = bench.submit(depend=f"before:{array}")
    assert bench.state(array) == "H"
    bench.do(ALICE, requests.Release(jobs=(array,)))
    assert bench.state(array) == "H"
    bench.wait(150)
    assert bench.state(array) == bench.state(other) == "F"


def test_a_hold_of_no_kind_changes_nothing(bench: Bench) -> None:
    blocked(bench)
    job = bench.submit()
    bench.make_pass()
    before = state_snapshot.dump(bench.core)
    assert code_of(bench.do(ALICE, requests.Hold(jobs=(job,), kinds="n"))) == ""
    assert state_snapshot.dump(bench.core) == before


def test_jobs_at_a_limit_have_no_place_to_exchange(bench: Bench) -> None:
    jobs = [bench.submit(queue="narrow") for _ in range(3)]
    bench.make_pass()
    with pytest.raises(Refusal, match="one user run at once") as error:
        bench.do(ALICE, requests.Order(first=jobs[1], second=jobs[2]))
    assert error.value.code == "bad-state"


def test_exchanging_places_lets_no_job_past_a_limit() -> None:
    bench = Bench(EMULATED + '[[queue]]\nname = "two"\nmax_running = 2\n')
    blocked(bench)
    jobs = [bench.submit("sleep 10\n", queue="two", resources=ALL) for _ in range(4)]
    bench.wait(1)
    bench.do(ALICE, requests.Order(first=jobs[0], second=jobs[1]))
    bench.check()
    bench.wait(200)
    started = sorted(jobs, key=lambda job: bench.ended[job].started or 0)
    assert started == [jobs[1], jobs[0], jobs[2], jobs[3]]


@pytest.mark.parametrize(
    ("old", "new", "procs", "memory"),
    [
        ({"nodes": "2:ppn=2"}, {"ncpus": "3"}, 3, 0),
        ({"select": "2:ncpus=2"}, {"ncpus": "3"}, 3, 0),
        ({"ncpus": "3"}, {"nodes": "2:ppn=2"}, 4, 0),
        ({"select": "2:ncpus=2:mem=1gb"}, {"mem": "4gb"}, 4, 4 << 30),
        ({"nodes": "2:ppn=2"}, {"mem": "4gb"}, 4, 4 << 30),
    ],
)
def test_each_altered_resource_takes_effect(
    bench: Bench, old: dict[str, str], new: dict[str, str], procs: int, memory: int
) -> None:
    job = bench.submit(resources=old, hold="u")
    assert alter(bench, job, resources=new) == ""
    demand = job_of(bench, job).prepared.demand
    assert (demand.procs, demand.memory) == (procs, memory)


def test_umask_checkpoint_and_no_dependency_can_be_altered(bench: Bench) -> None:
    parent = blocked(bench)
    job = bench.submit(depend=f"afterok:{parent}")
    assert alter(bench, job, umask=0o22, checkpoint="n", depend="") == ""
    found = job_of(bench, job)
    assert (found.spec.umask, found.spec.checkpoint, found.spec.depend, found.unmet) == (
        0o22,
        "n",
        "",
        0,
    )
    assert (found.state.letter, bench.core.children) == ("Q", {})


def test_a_slot_limit_that_comes_later_counts_those_that_run(bench: Bench) -> None:
    array = bench.submit("sleep 100\n", array="1-40")
    bench.wait(1)
    assert alter(bench, array, slot_limit=14) == ""
    bench.check()
    assert bench.core.run_limits["array 1"].used == 16
    for first, left in ((1, 14), (3, 14)):
        bench.do(ALICE, requests.Delete(jobs=tuple(f"1[{index}]" for index in (first, first + 1))))
        bench.wait(1)
        assert len(bench.core.pools[0].running) == left
        bench.check()


def test_gates_that_come_and_go_keep_nothing(bench: Bench) -> None:
    blocked(bench)
    jobs = [bench.submit("sleep 1\n", resources=ALL) for _ in range(5)]
    for started in (False, True) * 20:
        bench.do(ROOT, requests.QueueControl(queues=("batch",), started=started))
        bench.do(ALICE, requests.Hold(jobs=(jobs[0],)))
        bench.do(ALICE, requests.Release(jobs=(jobs[0],)))
        bench.make_pass()
        bench.check()
        assert len(bench.core.run_limits.get("queue batch", RunLimit()).waiting) <= 6
    assert bench.core.run_limits == {}
    bench.wait(200)
    assert bench.core.jobs == {}


def test_holding_and_releasing_at_a_gate_leaves_no_pile(bench: Bench) -> None:
    jobs = [bench.submit("sleep 1\n", queue="narrow") for _ in range(5)]
    bench.make_pass()
    for _ in range(500):
        bench.now += 1
        bench.do(ALICE, requests.Hold(jobs=(jobs[4],)))
        bench.do(ALICE, requests.Release(jobs=(jobs[4],)))
    assert len(bench.core.run_limits["user narrow alice"].waiting) < 80
    bench.check()
    bench.wait(100)
    assert (bench.core.jobs, bench.core.run_limits) == ({}, {})


def test_regate_takes_the_gates_of_now(bench: Bench) -> None:
    bench.do(ROOT, requests.QueueControl(queues=("narrow",), started=False))
    jobs = [bench.submit("sleep 10\n", queue="narrow", actor=BOB) for _ in range(3)]
    bench.core.queues["narrow"].started = True
    steps.whole(run_limits.recount(bench.core, ["narrow"]))
    bench.check()
    bench.make_pass()
    assert [bench.state(job) for job in jobs] == ["R", "Q", "Q"]
    steps.whole(run_limits.recount(bench.core, ["batch", "narrow"]))
    bench.check()
    bench.wait(100)
    assert (bench.core.jobs, bench.core.run_limits) == ({}, {})


def test_mail_of_arrays() -> None:
    bench = Bench('mail_command = ["mail"]\n' + EMULATED)
    bench.submit("sleep 1\n", array="1-2", mail_points="abe")
    bench.submit("sleep 1\n", array="1-2")
    bench.submit("sleep 1\n", array="1-2", mail_points="je")
    doomed = bench.submit("sleep 100\n", array="1-2")
    bench.wait(5)
    bench.do(ALICE, requests.Delete(jobs=(doomed,)))
    sent = [
        (effect.key.sequence, effect.key.member, effect.point)
        for effect in bench.outbox
        if isinstance(effect, Mail)
    ]
    assert sorted(sent) == [
        (1, -2, "b"),
        (1, -2, "e"),
        (3, -2, "e"),
        (3, 1, "e"),
        (3, 2, "e"),
        (4, -2, "a"),
    ]


def test_the_number_of_a_finished_array_names_it_in_dependencies(bench: Bench) -> None:
    bench.submit("sleep 1\n", array="1-3")
    bench.wait(5)
    assert bench.core.jobs == {}
    child = bench.submit(depend="afterok:1")
    never = bench.submit(depend="afternotok:1")
    bench.wait(1)
    assert (bench.state(child), bench.state(never)) == ("R", "F")
    unknown = bench.submit(depend=f"afterok:{child.partition('.')[0]}[7]")
    assert bench.state(unknown) == "F"


def test_a_move_is_checked_against_the_owner_and_to_the_same_queue_is_nothing() -> None:
    config = (
        "max_jobs_per_user = 2\n"
        + EMULATED
        + '[[queue]]\nname = "hers"\nusers = ["alice"]\nmax_queued = 1\n'
    )
    bench = Bench(config)
    mine, other = bench.submit(hold="u"), bench.submit(actor=BOB, hold="u")
    bench.submit(hold="u")
    assert (
        code_of(bench.do(ROOT, requests.Move(jobs=(other,), destination="hers"))) == "queue-access"
    )
    assert code_of(bench.do(ROOT, requests.Move(jobs=(mine,), destination="hers"))) == ""
    before = state_snapshot.dump(bench.core)
    assert code_of(bench.do(ALICE, requests.Move(jobs=(mine,), destination="hers"))) == ""
    assert state_snapshot.dump(bench.core) == before


def test_accounting_names_the_user_that_deleted(bench: Bench) -> None:
    jobs = [bench.submit("sleep 100\n"), bench.submit(array="1-2"), bench.submit(hold="u")]
    bench.make_pass()
    bench.do(ROOT, requests.Delete(jobs=tuple(jobs[:2])))
    bench.do(ALICE, requests.Delete(jobs=(jobs[2],)))
    requestors = [
        effect.text.partition("@")[0]
        for effect in bench.outbox
        if isinstance(effect, Account) and effect.kind == "D"
    ]
    assert requestors == ["requestor=root"] * 3 + ["requestor=alice"]


def test_a_requeued_job_has_not_started_and_a_held_one_has_no_promise() -> None:
    bench = Bench(EMULATED.replace("[[pool]]", '[[pool]]\npolicy = "conservative"'))
    job = blocked(bench)
    waits = bench.submit(resources=ALL)
    bench.make_pass()
    assert (job_of(bench, waits).promised or 0) > 0
    bench.do(ALICE, requests.Hold(jobs=(waits,)))
    assert job_of(bench, waits).promised is None
    bench.do(ALICE, requests.Rerun(jobs=(job,)))
    found = job_of(bench, job)
    assert (found.state.letter, found.attempt, found.promised, found.attempts) == (
        "Q",
        None,
        None,
        1,
    )
    assert bench.state(bench.submit(depend=f"after:{job}")) == "Q"


def test_a_long_chain_of_which_the_first_fails_ends_as_a_whole(bench: Bench) -> None:
    last = bench.submit("sleep 1\nexit 1\n")
    for number in range(1500):
        last = bench.submit(depend=f"afterok:{last}", array="1-2" if number % 500 == 7 else "")
    bench.wait(5)
    assert bench.core.jobs == {}
    assert "can never be met" in bench.ended[last].comment
