"""What users of a batch system count on, one thing a test: states, holds, arrays, dependencies,
limits, refusals."""

from __future__ import annotations

import pytest

from qbatch.daemon.core import flow
from qbatch.daemon.core.accounting import text_of
from qbatch.daemon.core.explain import reason_for
from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.records import full_record
from qbatch.daemon.core.state import Account, Ending
from qbatch.model.actions import parts_of
from qbatch.wire import requests
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes
from tests.daemon.core.driver import ALICE, BOB, EMULATED, ROOT, SECOND, Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()


def whole(**more: object) -> dict[str, object]:
    """All four hosts."""
    return {"resources": {"select": "4:ncpus=4"}, **more}


def test_a_job_runs_as_long_as_it_sleeps_and_ends(bench: Bench) -> None:
    job = bench.submit("sleep 30\nsleep 2m\nexit 3\n")
    bench.wait(1)
    assert bench.state(job) == "R"
    bench.wait(200)
    record = bench.ended[job]
    assert (record.ended or 0) - (record.started or 0) == 150 * SECOND
    assert record.exit_status == 3


def test_walltime_ends_a_job_that_would_run_longer(bench: Bench) -> None:
    job = bench.submit("sleep 1000\n", resources={"walltime": "10"})
    bench.wait(20)
    record = bench.ended[job]
    assert (record.ended or 0) - (record.started or 0) == 10 * SECOND
    assert record.exit_status == -29


def test_without_a_walltime_the_queue_gives_one(bench: Bench) -> None:
    job = bench.submit("true\n")
    bench.make_pass()
    found = bench.core.find(bench.core.key_of(job))
    assert found is not None
    assert found.prepared.walltime == 600 * SECOND


def test_held_jobs_wait_and_rank_from_their_release(bench: Bench) -> None:
    first = bench.submit(hold="u", **whole())
    second = bench.submit(**whole())
    bench.wait(1)
    assert (bench.state(first), bench.state(second)) == ("H", "R")
    third = bench.submit(**whole())
    bench.wait(1)
    bench.do(ALICE, requests.Release(jobs=(first,)))
    bench.wait(10)
    assert (bench.state(third), bench.state(first)) == ("R", "Q")


def test_a_running_job_that_is_held_goes_on_and_is_held_when_it_is_queued_again(
    bench: Bench,
) -> None:
    job = bench.submit("sleep 100\n")
    bench.wait(1)
    bench.do(ALICE, requests.Hold(jobs=(job,)))
    assert bench.state(job) == "R"
    bench.do(ALICE, requests.Rerun(jobs=(job,)))
    bench.wait(1)
    assert bench.state(job) == "H"
    bench.do(ALICE, requests.Release(jobs=(job,)))
    bench.wait(1)
    assert bench.state(job) == "R"
    found = bench.core.find(bench.core.key_of(job))
    assert found is not None
    assert found.attempts == 2


def test_only_operators_place_system_holds(bench: Bench) -> None:
    job = bench.submit()
    with pytest.raises(Refusal, match="only operators"):
        bench.do(ALICE, requests.Hold(jobs=(job,), kinds="s"))
    bench.do(ROOT, requests.Hold(jobs=(job,), kinds="s"))
    with pytest.raises(Refusal, match="only operators"):
        bench.do(ALICE, requests.Release(jobs=(job,), kinds="s"))
    assert bench.state(job) == "H"


def test_a_later_start_is_waited_for(bench: Bench) -> None:
    job = bench.submit(not_before=50 * SECOND)
    bench.wait(49)
    assert bench.state(job) == "W"
    bench.wait(2)
    assert bench.state(job) == "R"


def test_arrays_count_their_jobs_and_end_as_a_whole(bench: Bench) -> None:
    array = bench.submit("sleep 10\n", array="1-6:2")
    assert array == "1[].qbatch"
    bench.wait(1)
    assert bench.state(array) == "B"
    assert [bench.state(f"1[{index}].qbatch") for index in (1, 3, 5)] == ["R", "R", "R"]
    bench.wait(20)
    assert bench.ended[array].exit_status == 0
    assert bench.ended["1[3].qbatch"].state == "X"
    assert bench.core.jobs == {}


def test_the_slot_limit_of_an_array_holds_and_can_be_changed(bench: Bench) -> None:
    array = bench.submit("sleep 100\n", array="1-6%2", resources={"ncpus": "1"})
    bench.wait(1)
    letters = [bench.state(f"1[{index}].qbatch") for index in range(1, 7)]
    assert letters == ["R", "R", "Q", "Q", "Q", "Q"]
    bench.do(ALICE, requests.Alter(jobs=(array,), changes=requests.Changes(slot_limit=4)))
    bench.wait(1)
    assert sum(bench.state(f"1[{index}].qbatch") == "R" for index in range(1, 7)) == 4
    bench.check()


@pytest.mark.parametrize(
    ("kind", "status", "state"),
    [
        ("afterok", 0, "R"),
        ("afterok", 1, "F"),
        ("afternotok", 0, "F"),
        ("afternotok", 2, "R"),
        ("afterany", 5, "R"),
    ],
)
def test_dependencies_on_the_end(bench: Bench, kind: str, status: int, state: str) -> None:
    parent = bench.submit(f"sleep 10\nexit {status}\n")
    child = bench.submit("sleep 50\n", depend=f"{kind}:{parent}")
    bench.wait(5)
    assert bench.state(child) == "H"
    bench.wait(6)
    assert bench.state(child) == state
    late = bench.submit("sleep 50\n", depend=f"{kind}:{parent}")
    bench.wait(1)
    assert bench.state(late) == state


def test_after_waits_for_the_start_and_before_makes_others_wait(bench: Bench) -> None:
    first = bench.submit("sleep 100\n", hold="u")
    child = bench.submit(depend=f"after:{first}")
    bench.wait(1)
    assert bench.state(child) == "H"
    bench.do(ALICE, requests.Release(jobs=(first,)))
    bench.wait(1)
    assert bench.state(child) == "R"
    waits = bench.submit(**whole())
    other = bench.submit("sleep 10\n", depend=f"beforeany:{waits}")
    bench.wait(1)
    assert (bench.state(waits), bench.state(other)) == ("H", "R")
    bench.wait(120)
    assert bench.state(waits) == "F"


def test_a_dependency_of_an_array_is_met_when_all_its_jobs_have_ended(bench: Bench) -> None:
    array = bench.submit("sleep 10\n", array="1-3")
    child = bench.submit(depend=f"afterok:{array}", array="1-2")
    bench.wait(5)
    assert bench.state("2[1].qbatch") == "H"
    bench.wait(6)
    assert bench.state("2[1].qbatch") == "R"
    assert bench.state(child) == "B"


def live(bench: Bench, job: str) -> BatchJob:
    found = bench.core.find(bench.core.key_of(job))
    assert found is not None
    return found


def test_one_job_of_a_set_runs_and_the_others_are_deleted_when_it_has(bench: Bench) -> None:
    blocker = bench.submit("sleep 20\n", **whole())
    first = bench.submit("sleep 30\n", **whole())
    second = bench.submit("sleep 10\n", depend=f"runone:{first}", resources={"ncpus": "1"})
    third = bench.submit(
        "sleep 10\n", depend=f"runone:{second}", resources={"ncpus": "1"}, hold="u"
    )
    assert (
        full_record(bench.core, live(bench, first)).depend
        == "runone:3.qbatch@qbatch:4.qbatch@qbatch"
    )
    assert (
        full_record(bench.core, live(bench, second)).depend
        == "runone:2.qbatch@qbatch:4.qbatch@qbatch"
    )
    bench.wait(25)
    assert [bench.state(job) for job in (blocker, first, second, third)] == ["F", "R", "H", "H"]
    why = reason_for(bench.core, live(bench, second)).text
    assert why == "waits: only one job of its set runs (depend=runone), and 2.qbatch has begun"
    bench.do(ALICE, requests.Release(jobs=(third,)))
    late = bench.submit("sleep 10\n", depend=f"runone:{first}", resources={"ncpus": "1"})
    bench.wait(1)
    assert [bench.state(job) for job in (first, second, third, late)] == ["R", "H", "H", "H"]
    bench.do(ALICE, requests.Rerun(jobs=(first,)))  # it waits again, and so may the others
    bench.check()
    bench.wait(100)
    ran = [job for job in (first, second, third, late) if bench.ended[job].exit_status == 0]
    assert len(ran) == 1
    for job in {first, second, third, late} - set(ran):
        record = bench.ended[job]
        assert (record.exit_status, record.started) == (271, None)
        assert record.comment == f"only one job of its set runs (depend=runone), and {ran[0]} has"
    assert bench.core.children == {}
    bench.check()


def test_two_jobs_of_a_set_that_one_pass_starts_become_one(bench: Bench) -> None:
    """Both fit at once: the first that the policy chose runs, the start of the other is taken back,
    its processors are free."""
    blocker = bench.submit("sleep 10\n", **whole())
    first = bench.submit("sleep 30\n", resources={"select": "2:ncpus=4", "walltime": "40"})
    second = bench.submit(
        "sleep 30\n", resources={"select": "2:ncpus=4", "walltime": "40"}, depend=f"runone:{first}"
    )
    other = bench.submit("sleep 30\n", resources={"select": "2:ncpus=4", "walltime": "40"})
    bench.wait(11)
    assert [bench.state(job) for job in (blocker, first, second, other)] == ["F", "R", "H", "R"]
    assert not [
        effect
        for effect in bench.outbox
        if isinstance(effect, Account) and effect.kind == "S" and effect.job == second
    ]
    bench.check()
    bench.wait(60)
    assert bench.ended[second].started is None
    assert bench.ended[first].exit_status == bench.ended[other].exit_status == 0


def test_a_job_that_leaves_a_set_before_it_runs_deletes_no_other(bench: Bench) -> None:
    first = bench.submit("sleep 30\n", hold="u")
    second = bench.submit("sleep 30\n", hold="u", depend=f"runone:{first}")
    array = bench.submit("sleep 30\n", hold="u", depend=f"runone:{first}", array="1-2")
    bench.do(ALICE, requests.Delete(jobs=(first,)))
    bench.wait(1)
    assert [bench.state(job) for job in (second, array)] == ["H", "H"]
    assert full_record(bench.core, live(bench, second)).depend == "runone:3[].qbatch@qbatch"
    bench.do(ALICE, requests.Release(jobs=(array,)))
    bench.wait(1)
    bench.do(ALICE, requests.Release(jobs=(second,)))
    assert [bench.state(job) for job in (second, array)] == ["H", "B"]
    bench.do(ALICE, requests.Alter(jobs=(second,), changes=requests.Changes(depend="")))
    bench.wait(1)
    assert bench.state(second) == "R"
    assert bench.core.children == {}
    bench.check()


def test_what_cannot_be_in_a_set_is_refused(bench: Bench) -> None:
    ended = bench.submit("sleep 1\n")
    bench.wait(5)
    bench.submit("sleep 30\n", array="1-2")
    waits = bench.submit("sleep 30\n")
    for depend, words in (
        (f"runone:{ended}", "the job has ended"),
        ("runone:2[1]", "name its array"),
        ("runone:", "names no job"),
    ):
        with pytest.raises(Refusal, match=words):
            bench.submit(depend=depend)
    with pytest.raises(Refusal, match="not yours"):
        bench.submit(depend=f"runone:{waits}", actor=BOB)


def test_a_dependency_on_an_unknown_job_ends_the_job_at_once(bench: Bench) -> None:
    for depend in ("afterok:77", "afterany:77", "before:77", "runone:77", "afterok:77[1]"):
        job = bench.submit(depend=depend)
        assert bench.state(job) == "F", depend
        assert "can never be met" in bench.ended[job].comment
    bench.check()


def test_what_waits_for_a_job_whose_dependency_fails_ends_too_whatever_it_waits_for(
    bench: Bench,
) -> None:
    failing = bench.submit("sleep 5\nexit 1\n")
    child = bench.submit(depend=f"afterok:{failing}")
    others = [bench.submit(depend=f"{kind}:{child}") for kind in ("afterany", "afternotok")]
    deleted = bench.submit(hold="u")
    after = bench.submit(depend=f"afterany:{deleted}")
    bench.do(ALICE, requests.Delete(jobs=(deleted,)))
    bench.wait(10)
    assert [bench.ended[job].started for job in (child, *others)] == [None] * 3
    assert bench.ended[after].exit_status == 0
    bench.check()


def test_a_dependency_of_an_unknown_type_is_refused(bench: Bench) -> None:
    with pytest.raises(Refusal, match="known: after, afterok"):
        bench.submit(depend="afterwards:1")


def test_limits_of_a_queue_hold_for_all_and_for_each_user(bench: Bench) -> None:
    mine = [bench.submit("sleep 100\n", queue="narrow") for _ in range(3)]
    theirs = [bench.submit("sleep 100\n", actor=BOB, queue="narrow") for _ in range(2)]
    bench.wait(1)
    assert [bench.state(job) for job in mine + theirs] == ["R", "Q", "Q", "R", "Q"]
    found = [bench.core.find(bench.core.key_of(job)) for job in (mine[1], theirs[1])]
    assert [reason_for(bench.core, job).code for job in found if job is not None] == [
        "user-limit",
        "queue-limit",
    ]
    bench.do(ALICE, requests.Delete(jobs=(mine[0],)))
    bench.wait(1)
    assert bench.state(mine[1]) == "R"
    bench.check()


def test_a_stopped_queue_keeps_its_jobs_waiting_in_order(bench: Bench) -> None:
    bench.do(ROOT, requests.QueueControl(queues=("batch",), started=False))
    jobs = [bench.submit(**whole()) for _ in range(3)]
    bench.wait(10)
    assert [bench.state(job) for job in jobs] == ["Q", "Q", "Q"]
    bench.do(ROOT, requests.QueueControl(queues=("batch",), started=True))
    bench.wait(1)
    assert [bench.state(job) for job in jobs] == ["R", "Q", "Q"]


def test_deleting_gives_hosts_back_and_says_how_it_ended(bench: Bench) -> None:
    running, waiting = bench.submit(**whole(script="sleep 500\n")), bench.submit(**whole())
    bench.wait(1)
    bench.do(ALICE, requests.Delete(jobs=(running,)))
    bench.wait(1)
    assert bench.ended[running].exit_status == 271
    assert bench.state(waiting) == "R"


def test_somebody_elses_job_cannot_be_touched(bench: Bench) -> None:
    job = bench.submit("sleep 100\n")
    bench.wait(1)
    for request in (
        requests.Delete(jobs=(job,)),
        requests.Hold(jobs=(job,)),
        requests.Release(jobs=(job,)),
        requests.Rerun(jobs=(job,)),
        requests.Signal(jobs=(job,)),
        requests.Message(jobs=(job,), text="hi"),
        requests.Move(jobs=(job,), destination="narrow"),
        requests.Alter(jobs=(job,), changes=requests.Changes(priority=5)),
    ):
        said = bench.do(BOB, request)
        assert isinstance(said, Outcomes)
        assert said.outcomes[0].error is not None, request
        assert said.outcomes[0].error.code == "not-permitted", request
    with pytest.raises(Refusal, match="needs the role operator"):
        bench.do(BOB, requests.QueueControl(queues=("batch",), enabled=False))


def test_a_host_that_goes_down_takes_its_jobs_along_and_they_run_again(bench: Bench) -> None:
    job = bench.submit("sleep 100\n", resources={"ncpus": "4"})
    stays = bench.submit("sleep 100\n", resources={"ncpus": "4"}, is_rerunnable=False)
    bench.wait(10)
    bench.do(ROOT, requests.HostControl(hosts=("n1", "n2"), action="down"))
    bench.wait(1)
    found = bench.core.find(bench.core.key_of(job))
    assert found is not None
    assert (found.state.letter, found.attempts) == ("R", 2)
    assert found.earlier is not None
    ((attempt, begin, end, procs, where),) = found.earlier.lost
    assert (attempt, end - begin, procs, end) == (1, 10 * 1_000_000, 4, found.present.started)
    assert where.partition("/")[0] in ("n1", "n2")
    assert full_record(bench.core, found).thrown_away == [(begin, end, 4, where)]
    assert bench.ended[stays].lost == ()
    assert {host for host, _, _ in parts_of(found.present.allocation)} <= {2, 3}
    assert bench.ended[stays].exit_status == -12
    assert "n2 went down" in bench.ended[stays].comment


def test_a_drained_host_finishes_what_it_has_and_gets_nothing_new(bench: Bench) -> None:
    job = bench.submit("sleep 100\n", resources={"ncpus": "4"})
    bench.wait(1)
    bench.do(ROOT, requests.HostControl(hosts=("n1",), action="drain"))
    wide = bench.submit(**whole())
    bench.wait(200)
    assert bench.ended[job].exit_status == 0
    assert bench.state(wide) == "Q"
    found = bench.core.find(bench.core.key_of(wide))
    assert found is not None
    assert "n1" in reason_for(bench.core, found).text
    bench.do(ROOT, requests.HostControl(hosts=("n1",), action="resume"))
    bench.wait(1)
    assert bench.state(wide) == "R"


def test_a_suspended_job_keeps_its_hosts_and_its_time_stands_still(bench: Bench) -> None:
    job = bench.submit("sleep 100\n")
    bench.wait(40)
    bench.do(ALICE, requests.Signal(jobs=(job,), signal="suspend"))
    bench.wait(1000)
    assert bench.state(job) == "S"
    bench.do(ALICE, requests.Signal(jobs=(job,), signal="resume"))
    bench.wait(59)
    assert bench.state(job) == "R"
    bench.wait(2)
    assert bench.ended[job].exit_status == 0


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        (
            {"select": "1:ncpus=200"},
            "needs 200 processors on one host; the largest host of queue batch has 4",
        ),
        ({"select": "5:ncpus=4"}, "20 processors"),
        ({"select": "2:ncpus=1", "nodes": "2"}, "Cannot be used with select or place: nodes"),
        ({"walltime": "soon"}, "no time"),
        ({"select": "2:ncpus=none"}, "Resource_List.select: ncpus=none"),
        ({"mem": "lots"}, "no memory size"),
    ],
)
def test_what_can_never_run_is_refused_with_the_reason(
    bench: Bench, resources: dict[str, str], text: str
) -> None:
    with pytest.raises(Refusal, match=text):
        bench.submit(resources=resources)
    assert bench.core.jobs == {}
    assert bench.core.next_sequence == 1


@pytest.mark.parametrize("name", ["a b", "a\nb", "\x1b[31m", "", "x" * 237, "a/b", "\u202eabc"])
def test_names_that_clients_cannot_read_back_are_refused(bench: Bench, name: str) -> None:
    with pytest.raises(Refusal, match="illegal -N value"):
        bench.submit(name=name)


def test_the_same_key_gives_the_same_job(bench: Bench) -> None:
    request = requests.Submit(spec=requests.Spec(script="true\n"), key="k")
    first, again, other = bench.do(ALICE, request), bench.do(ALICE, request), bench.do(BOB, request)
    assert first == again
    assert first != other
    assert len(bench.core.jobs) == 2


def test_a_dry_run_queues_nothing(bench: Bench) -> None:
    said = bench.do(ALICE, requests.Submit(spec=requests.Spec(script="true\n"), is_dry_run=True))
    assert "would be queued in batch" in said.comment  # type: ignore[attr-defined]
    assert bench.core.jobs == {}


def test_altering_what_a_job_asks_for(bench: Bench) -> None:
    blocker = bench.submit(**whole(script="sleep 500\n"))
    job = bench.submit(**whole())
    bench.wait(1)
    bench.do(
        ALICE,
        requests.Alter(
            jobs=(job,),
            changes=requests.Changes(
                resources={"select": "1:ncpus=1", "walltime": "60"}, name="new"
            ),
        ),
    )
    bench.wait(1)
    found = bench.core.find(bench.core.key_of(job))
    assert found is not None
    assert (found.name, found.prepared.demand.procs, found.prepared.walltime) == (
        "new",
        1,
        60 * SECOND,
    )
    said = bench.do(
        ALICE, requests.Alter(jobs=(blocker,), changes=requests.Changes(resources={"ncpus": "1"}))
    )
    assert said.outcomes[0].error.code == "modify-running"  # type: ignore[attr-defined]


def test_routing_takes_the_first_queue_that_takes_the_job() -> None:
    bench = Bench(
        EMULATED
        + '[[queue]]\nname = "short"\nmax_walltime = "60"\ndefault_walltime = "60"\n'
        + '[[queue]]\nname = "route"\ndestinations = ["short", "batch"]\n'
    )
    quick, slow = (
        bench.submit(queue="route", resources={"walltime": "30"}),
        bench.submit(queue="route", resources={"walltime": "300"}),
    )
    assert [bench.core.find(bench.core.key_of(job)).queue for job in (quick, slow)] == [
        "short",
        "batch",
    ]  # type: ignore[union-attr]
    with pytest.raises(Refusal, match="no destination of queue route"):
        bench.submit(queue="route", resources={"ncpus": "99"})


def test_accounting_records_the_life_of_a_job(bench: Bench) -> None:
    job = bench.submit("sleep 5\n", name="named", account="proj x")
    bench.wait(10)
    kinds = [
        effect.kind for effect in bench.outbox if isinstance(effect, Account) and effect.job == job
    ]
    assert kinds == ["Q", "S", "E"]
    text = next(
        text_of(effect)
        for effect in bench.outbox
        if isinstance(effect, Account) and effect.kind == "E"
    )
    for part in (
        "user=alice",
        "jobname=named",
        "Exit_status=0",
        "resources_used.walltime=00:00:05",
        "exec_host=n1/0",
        'account="proj_x"',
    ):
        assert part in text
    assert sum(isinstance(effect, Ending) for effect in bench.outbox) == 1


def test_draws_of_run_times_are_the_same_on_every_replay_and_keep_their_mean() -> None:
    config = EMULATED.replace("cpus = 4", 'cpus = 4\nruntime = "exponential(100)"')
    runs = []
    for _ in range(2):
        bench = Bench(config)
        jobs = [bench.submit("true\n", resources={"walltime": "100000"}) for _ in range(400)]
        bench.wait(100_000)
        runs.append(
            [(bench.ended[job].ended or 0) - (bench.ended[job].started or 0) for job in jobs]
        )
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 390
    assert 85 * SECOND < sum(runs[0]) / 400 < 115 * SECOND


def test_two_waiting_jobs_exchange_their_places_and_no_other_moves(bench: Bench) -> None:
    bench.submit(**whole(script="sleep 10\n"))
    bench.wait(1)
    jobs = [bench.submit(**whole(script="sleep 10\n")) for _ in range(4)]
    bench.wait(1)
    bench.do(ALICE, requests.Order(first=jobs[0], second=jobs[2]))
    bench.wait(100)
    started = sorted(jobs, key=lambda job: bench.ended[job].started or 0)
    assert started == [jobs[2], jobs[1], jobs[0], jobs[3]]
    bench.check()


def test_an_attempt_that_was_suspended_is_lost_in_pieces_and_the_latest_are_kept(
    bench: Bench,
) -> None:
    job = bench.submit("sleep 100\n", resources={"ncpus": "4"})
    bench.wait(10)
    bench.do(ALICE, requests.Signal(jobs=(job,), signal="suspend"))
    bench.wait(5)
    bench.do(ALICE, requests.Signal(jobs=(job,), signal="resume"))
    bench.wait(20)
    for _ in range(flow.MOST_LOST):
        bench.do(ALICE, requests.Rerun(jobs=(job,)))
        bench.wait(1)
    found = bench.core.find(bench.core.key_of(job))
    assert found is not None
    assert found.earlier is not None
    lost = found.earlier.lost
    assert len(lost) == flow.MOST_LOST
    (first, begin, end, _, _), (second, *_) = lost[:2]
    # The piece before the suspension is one too many.
    assert (first, second, end - begin) == (1, 2, 20 * 1_000_000)
