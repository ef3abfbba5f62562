"""EQspatial: against the naive oracle, by properties, and in cases worked by hand."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.daemon.config import parse_config
from qbatch.engine.engine import Engine
from qbatch.engine.states import State
from qbatch.model.errors import InputError, UsageError
from qbatch.model.events import HostClosed, HostOpened, Submitted, Withdrawn, Woken
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.planning.kernels import equal_shares as shares
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.policy import compiled_of
from qbatch.policies import load_policy
from qbatch.simulation import run
from tests.harness import size, total_wait, workload_of
from tests.oracle import naive
from tests.policies.naive_quantum import Asked
from tests.policies.naive_spatial import Sharing, dealt, simulate
from tests.policies.test_immediate import SECOND, asked, random_case, schedule_of, seconds


def water_fill(room: int, wanted: list[int]) -> list[int]:
    """Let those who want processors come to one host in turn; return what each has in equal
    shares."""
    state = shares.new_state(one_host(1), (0, FOREVER, 0, 0))
    state.hosts[0].cpus = room
    for row, want in enumerate(wanted):
        shares.enter(0, shares.come(row, want, 0, 0, state), 0, 0, shares.NO_TRIAL, state)
    shares.find_shares(0, state)
    return state.jobs["share"][: len(wanted)].tolist()


@given(st.integers(0, 40), st.lists(st.integers(1, 20), max_size=12))
def test_water_is_filled_as_it_is_dealt_out(room: int, wanted: list[int]) -> None:
    assert water_fill(room, wanted) == dealt(room, wanted)


@pytest.mark.parametrize("interval", [0, 1, 7])
def test_every_job_goes_as_the_oracle_says(interval: int) -> None:
    for seed in range(size(160, 800)):
        hosts, jobs = random_case(seed)
        hosts = [(procs, 0) for procs, _ in hosts]
        schedule = schedule_of(f"equispatial:interval={interval}", hosts, jobs)
        naively = simulate(
            [procs for procs, _ in hosts],
            [Sharing(job.submit, job.procs, job.run * job.procs) for job in jobs],
            interval * SECOND,
        )
        assert schedule.end.tolist() == [job.end for job in naively], (seed, hosts, jobs)
        assert schedule.start.tolist() == [job.first for job in naively], (seed, hosts, jobs)


JOBS = st.lists(
    st.builds(
        Asked,
        st.integers(0, 40).map(SECOND.__mul__),
        st.integers(1, 9),
        st.sampled_from((0, 1, 3, 6, 10)),
        st.sampled_from((0, 1, 3, 8, 30)).map(SECOND.__mul__),
        st.sampled_from((0, SECOND // 3, SECOND, 8 * SECOND, 30 * SECOND + 1)),
        st.sampled_from((-1, 0, 3, 10)),
    ),
    max_size=40,
)


@settings(max_examples=size(100, 300))
@given(
    st.lists(st.tuples(st.integers(1, 8), st.sampled_from((0, 6, 10, 20))), min_size=1, max_size=4),
    JOBS.filter(len),
    st.sampled_from((0, 1, 7)),
    st.sampled_from(("yes", "no")),
    st.integers(1, 4),
    st.sampled_from((0, 3, 5)),
)
def test_the_compiled_loop_is_the_engine_to_the_microsecond(
    hosts: list[tuple[int, int]],
    jobs: list[Asked],
    interval: int,
    over50: str,
    quantum: int,
    memory: int,
) -> None:
    """``schedule_of`` runs both and holds starts, ends, kinds, hosts, pieces, refusals and the
    longest queue against each other."""
    hours = 3600 if over50 == "yes" else 1
    jobs = [
        Asked(
            hours * job.submit,
            job.procs,
            job.memory,
            hours * job.estimate,
            hours * job.run,
            job.used,
        )
        for job in sorted(jobs, key=lambda job: job.submit)
    ]
    text = f"equispatial:interval={hours * interval},over50={over50},quantum={hours * quantum},memory={memory}"
    assert len(schedule_of(text, hosts, jobs).start) == len(jobs)


def test_many_jobs_of_many_widths_that_wait_have_their_shares_in_both_drivers() -> None:
    """More widths than the pass remembers levels, more jobs than its first arrays hold."""
    rng = random.Random(1)
    for _ in range(3):
        jobs = [
            Asked(
                n // 20 * SECOND,
                rng.randint(1, 200),
                rng.choice((0, 40, 60)),
                300 * SECOND,
                rng.randint(1, 300) * SECOND,
                50,
            )
            for n in range(400)
        ]
        schedule = schedule_of(
            "equispatial:interval=5,quantum=2,memory=10", [(200, 100), (128, 60)], jobs
        )
        assert schedule.queue_max > 100


def test_where_work_is_more_than_the_loop_counts_the_engine_replays() -> None:
    year = 365 * 24 * 3600 * SECOND
    work = workload_of(
        [naive.Job(0, 0, 1 << 16, 20 * year, 20 * year), naive.Job(1, 0, 1 << 16, year, year)],
        1 << 16,
    )
    machine, policy = one_host(1 << 16), load_policy("equispatial")
    schedule = run(work, machine, policy)
    assert schedule.end.tolist() == [21 * year, 2 * year]
    with pytest.raises(UsageError, match="has no compiled loop"):
        run(work, machine, policy, driver="compiled")
    assert compiled_of(policy, machine) is not None


def test_with_memory_everyone_ends_and_his_work_is_done_once() -> None:
    # The audit of every run checks capacity, memory and conserved work; here are its more crowded
    # cases.
    for seed in range(size(80, 300)):
        hosts, jobs = random_case(seed)
        rng = random.Random(seed)
        text = f"equispatial:interval={rng.choice((0, 2, 30))},quantum={rng.choice((1, 5))},memory={rng.choice((1, 5))}"
        schedule = schedule_of(text, hosts, jobs)
        assert (schedule.end >= 0).all()
        assert (total_wait(schedule) >= 0).all(), seed


def shares_at(schedule, at: float) -> dict[int, int]:
    """Processors at an instant of each job that ran in several execution intervals."""
    return {
        int(row): int(procs)
        for row, begin, end, procs, _, _ in schedule.pieces.tolist()
        if begin <= at * SECOND < end
    }


def test_shares_are_equal_but_no_job_has_more_than_it_asks_for() -> None:
    schedule = schedule_of(
        "equispatial", [(10, 0)], [asked(0, 10, 100), asked(10, 2, 100), asked(10, 9, 100)]
    )
    # 10 processors for requests of 10, 2, 9: levels 4, 2, 4.
    assert shares_at(schedule, 5) == {0: 10}
    assert shares_at(schedule, 10) == {0: 4, 2: 4}
    assert seconds(schedule.start) == [0, 10, 10]
    assert seconds(schedule.end)[1] == 110


def test_the_remainder_goes_one_each_in_order_of_arrival() -> None:
    schedule = schedule_of(
        "equispatial", [(8, 0)], [asked(0, 8, 90), asked(0, 8, 90), asked(0, 8, 90)]
    )
    assert shares_at(schedule, 0) == {0: 3, 1: 3, 2: 2}


def test_with_more_jobs_than_processors_the_last_ones_stand_still() -> None:
    schedule = schedule_of(
        "equispatial", [(2, 0)], [asked(0, 2, 10), asked(1, 1, 10), asked(2, 1, 10)]
    )
    assert shares_at(schedule, 1) == {0: 1}
    assert seconds(schedule.start) == [0, 1, 11]
    # Job 1 has 2 for a second and 1 from then on: 2 + 18 is its work.
    assert seconds(schedule.end) == [19, 11, 21]


def test_between_two_divisions_a_new_job_has_what_is_unallocated() -> None:
    jobs = [asked(0, 4, 1000), asked(100, 6, 1000), asked(150, 2, 1000)]
    schedule = schedule_of("equispatial:interval=300", [(8, 0)], jobs)
    # Divided at 0; at 100 job 2 takes the 4 that are left, at 150 there are none for job 3; all is
    # divided at 300.
    assert seconds(schedule.start) == [0, 100, 300]
    assert shares_at(schedule, 299) == {0: 4, 1: 4}
    assert shares_at(schedule, 300) == {0: 3, 1: 3}


def test_a_job_goes_where_it_has_all_that_it_asks_for_else_where_there_is_most_for_each_request() -> (
    None
):
    hosts = [(8, 0), (6, 0)]
    schedule = schedule_of(
        "equispatial", hosts, [asked(0, 5, 100), asked(0, 4, 100), asked(0, 4, 100)]
    )
    # Job 1 goes to the host with the fewest free (6), job 2 to the other, where job 3 fits as well.
    assert schedule.pieces is None
    schedule = schedule_of(
        "equispatial", hosts, [asked(0, 5, 100), asked(0, 6, 100), asked(0, 4, 100)]
    )
    # For job 3: 8 / (6 + 4) on the first host, 6 / (5 + 4) on the second: the first.
    assert shares_at(schedule, 0) == {1: 4}
    assert seconds(schedule.end)[0] == 100


def test_a_job_that_waited_for_memory_gets_all_until_it_has_what_it_missed() -> None:
    jobs = [asked(0, 4, 100, memory=6), asked(0, 4, 300, memory=6), asked(0, 4, 200)]
    schedule = schedule_of("equispatial:memory=0", [(4, 10)], jobs)
    # Jobs 1 and 3 have 2 each until job 1 ends at 200.  Job 2 would have had 1 of (2, 1, 1): it
    # missed 200.  From then on it has 3, as one is left for job 3: one more than its share of 2,
    # for 200 s.  Job 3 has done 400 + 200 + 200 by 500, and job 2 600 + 200, and 400 alone.
    assert seconds(schedule.start) == [0, 200, 0]
    assert shares_at(schedule, 200) == shares_at(schedule, 399) == {1: 3, 2: 1}
    assert shares_at(schedule, 400) == {1: 2, 2: 2}
    assert seconds(schedule.end) == [200, 600, 500]


def test_without_memory_a_quantum_shrinks_the_others() -> None:
    jobs = [
        asked(0, 4, 100, memory=10),
        asked(10, 3, 2, memory=8, used=1),
        asked(30, 3, 50, memory=8, used=1),
    ]
    schedule = schedule_of("equispatial:quantum=5,memory=1", [(4, 11)], jobs)
    # Job 2 ends in its quantum; job 3 does not, and waits for the memory of job 1.
    assert seconds(schedule.start) == [0, 10, 30]
    assert seconds(schedule.end)[1] == 12
    assert shares_at(schedule, 11) == {0: 1}  # and job 2, which ran in one go, the other three
    assert shares_at(schedule, 13) == {0: 4}
    assert shares_at(schedule, 32) == {0: 1, 2: 3}
    assert shares_at(schedule, 36) == {0: 4}
    # 6 + 15 processor-seconds less for job 1: 2 s and 5 s on 1 instead of 4.
    assert seconds(schedule.end)[0] == 100 + (6 + 15) / 4
    assert [piece[0] for piece in schedule.pieces.tolist() if not piece[5]] == [2]


def test_after_fifty_hours_a_job_gets_all_if_the_others_keep_one() -> None:
    hour = 3600
    jobs = [asked(0, 4, 100 * hour), asked(49 * hour, 4, 10 * hour)]
    fair = schedule_of("equispatial", [(4, 0)], jobs)
    assert shares_at(fair, 50 * hour + 1) == {0: 2, 1: 2}
    favoured = schedule_of("equispatial:over50=yes", [(4, 0)], jobs)
    assert shares_at(favoured, 50 * hour - 1) == {0: 2, 1: 2}
    assert shares_at(favoured, 50 * hour + 1) == {0: 3, 1: 1}


def submitted(number: int, procs: int, at: int, memory: int = 0) -> Submitted:
    return Submitted(
        Job(number=number, submit=at * SECOND, procs=procs, estimate=1000 * SECOND, memory=memory)
    )


def test_closed_hosts_stay_as_they_are_and_share_again_when_they_open() -> None:
    machine = Machine((Host("a", 4, 10), Host("b", 2, 10)), single_host=True)
    engine = Engine(machine, load_policy("equispatial"), is_audited=True)
    engine.handle(0, [submitted(1, 4, 0, 1), submitted(2, 2, 0, 1)])
    engine.handle(SECOND, [HostClosed(0)])
    engine.handle(2 * SECOND, [submitted(3, 1, 2, 1), submitted(4, 3, 2, 1), submitted(5, 2, 2, 9)])
    assert engine.view().running[0].procs == 4
    assert engine.view().running[1].procs == engine.view().running[2].procs == 1
    assert engine.explain(4).code == "memory"
    engine.handle(3 * SECOND, [HostOpened(0)])
    assert engine.view().running[0].procs == 2
    assert engine.view().running[3].procs == 2
    assert engine.state_of(4) is State.QUEUED
    engine.handle(4 * SECOND, [Withdrawn(4)])
    assert len(engine.view().queue) == 0


def test_a_job_that_is_withdrawn_before_it_began_gives_back_the_memory_of_its_place() -> None:
    engine = Engine(
        Machine((Host("a", 1, 10),)), load_policy("equispatial:memory=0"), is_audited=True
    )
    engine.handle(0, [submitted(1, 1, 0, 4), submitted(2, 1, 0, 5), submitted(3, 1, 0, 6)])
    # Job 2 has a place next to job 1, but no processor; for job 3 there is 1 left of 10.
    assert engine.explain(1).code == "processors"
    assert engine.explain(2).code == "memory"
    engine.handle(SECOND, [Withdrawn(1)])
    assert engine.explain(2).code == "processors"


def test_a_host_that_opens_is_divided() -> None:
    engine = Engine(
        Machine((Host("a", 4, 10),)), load_policy("equispatial:interval=10"), is_audited=True
    )
    engine.handle(0, [submitted(1, 4, 0, 1)])
    engine.handle(SECOND, [HostClosed(0)])
    engine.handle(20 * SECOND, [HostOpened(0)])
    engine.handle(25 * SECOND, [submitted(2, 4, 25, 1)])
    assert engine.view().running[0].procs == 4
    assert engine.next_timer() == 30 * SECOND
    engine.handle(30 * SECOND, [])
    assert engine.view().running[0].procs == engine.view().running[1].procs == 2


def test_machines_and_shadows_that_it_is_not_for_are_refused() -> None:
    with pytest.raises(UsageError, match="single_host = true"):
        Engine(Machine((Host("a", 4), Host("b", 2))), load_policy("equispatial"))
    with pytest.raises(InputError, match="cannot be a what-if policy"):
        parse_config('shadows = ["equispatial"]\n', "the test")


def test_jobs_that_run_and_that_are_suspended_under_another_policy_are_taken_up() -> None:
    machine = Machine((Host("a", 8),), single_host=True)
    engine = Engine(machine, load_policy("immediate:inner=easy,protect=0"), is_audited=True)
    engine.handle(0, [Submitted(Job(number=1, submit=0, procs=8, estimate=900 * SECOND))])
    engine.handle(SECOND, [Submitted(Job(number=2, submit=SECOND, procs=6, estimate=900 * SECOND))])
    assert (set(engine.view().running), set(engine.view().suspended)) == ({1}, {0})
    engine.exchange_policy(load_policy("equispatial"))
    engine.handle(2 * SECOND, [Woken()])
    assert {row: run.procs for row, run in engine.view().running.items()} == {0: 4, 1: 4}
    assert engine.view().running[0].done == 8 * SECOND
