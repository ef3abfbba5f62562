"""Commands about many jobs are carried out in steps: others come in between, and nothing stays half
done."""

from __future__ import annotations

import msgspec
import pytest

from qbatch.daemon import journal_entry
from qbatch.daemon.config import as_toml, parse_config
from qbatch.daemon.core import state_snapshot, steps
from qbatch.daemon.core.invariants import breaches
from qbatch.daemon.core.job import BatchState
from qbatch.daemon.core.reconfigure import reconfigure
from qbatch.daemon.core.state import Core
from qbatch.daemon.core.steps import STEP, UNFINISHED
from qbatch.daemon.handlers import verbs
from qbatch.model.errors import InputError
from qbatch.policies.registry import load_policy
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import (
    Alter,
    Changes,
    Delete,
    ForceStart,
    Hold,
    Move,
    QueueControl,
    Release,
    Request,
    Spec,
    Submit,
)
from tests.daemon.core.driver import EMULATED, ROOT, Bench

MANY = 3 * STEP + 50
_encode = msgspec.json.Encoder().encode
ARRAY = Submit(spec=Spec(script="sleep 10\n", array=f"1-{MANY}"))


def in_steps(bench: Bench, request: Request, between: tuple[Request, ...] = ()) -> int:
    """Carry out a request as the service does, others after each of its steps; return how many
    steps it took."""
    core, count = bench.core, 1
    result = verbs.begin(core, ROOT, request)
    bench.journal.append(journal_entry.command(core.now, ROOT, _encode(request)))
    while result is UNFINISHED:
        for other in between:
            bench.do(ROOT, other)
        result, count = steps.go_on(core), count + 1
        bench.journal.append(journal_entry.step(core.now))
    core.take_effects()
    return count


CHANGES: tuple[tuple[Request, ...], ...] = (
    (Hold(jobs=("1[]",)),),
    (Hold(jobs=("1[]",)), Release(jobs=("1[]",))),
    (Alter(jobs=("1[]",), changes=Changes(resources={"walltime": "5:00"})),),
    (Alter(jobs=("1[]",), changes=Changes(slot_limit=3)),),
    (Hold(jobs=("1[]",)), Move(jobs=("1[]",), destination="narrow")),
    (Delete(jobs=("1[]",)),),
    (QueueControl(queues=("batch",), started=False),),
    (QueueControl(queues=("batch",), started=False), QueueControl(queues=("batch",), started=True)),
)


@pytest.mark.parametrize("commands", CHANGES)
def test_steps_lead_to_what_one_go_leads_to(commands: tuple[Request, ...]) -> None:
    stepped, whole = Bench(), Bench()
    in_steps(stepped, ARRAY)
    verbs.carry_out(whole.core, ROOT, ARRAY)
    for command in commands:
        for bench in (stepped, whole):
            bench.wait(20)
        assert in_steps(stepped, command) > 1
        verbs.carry_out(whole.core, ROOT, command)
        for bench in (stepped, whole):
            bench.check()
            bench.core.take_effects()
        assert state_snapshot.dump(stepped.core) == state_snapshot.dump(whole.core)


@pytest.mark.parametrize("commands", CHANGES)
def test_the_journal_with_steps_and_what_came_in_between_gives_the_same_state(
    commands: tuple[Request, ...],
) -> None:
    bench = Bench()
    bench.do(ROOT, ARRAY)
    bench.make_pass()
    between = (
        Submit(spec=Spec(script="sleep 5\n")),
        Delete(jobs=(f"1[{MANY - 3}]",)),
        Hold(jobs=(f"1[{MANY - 4}]",)),
        Release(jobs=(f"1[{MANY - 4}]",)),
    )
    for command in commands:
        in_steps(bench, command, between)
        bench.check()
    bench.make_pass()
    bench.check()
    bench.core.take_effects()
    assert state_snapshot.dump(bench.replayed(bench.journal)) == state_snapshot.dump(bench.core)


def test_what_was_under_way_at_a_crash_is_finished_after_it() -> None:
    bench = Bench()
    bench.do(ROOT, ARRAY)
    bench.make_pass()
    assert verbs.begin(bench.core, ROOT, Delete(jobs=("1[]",))) is UNFINISHED
    bench.journal.append(
        journal_entry.command(bench.core.now, ROOT, _encode(Delete(jobs=("1[]",))))
    )
    steps.go_on(bench.core)
    bench.journal.append(journal_entry.step(bench.core.now))
    found = bench.replayed(bench.journal)
    left = len(found.members(found.jobs[1]))
    assert 0 < left < MANY
    assert len(found.works) == 1
    while found.works:
        steps.go_on(found)
    assert found.jobs == {}
    assert found.ended_count == MANY
    assert breaches(found) == []


def test_a_command_about_an_array_waits_for_the_one_that_has_it_in_hand() -> None:
    """Else the deletion would miss the jobs that the submission has not made yet."""
    bench = Bench()
    assert verbs.begin(bench.core, ROOT, ARRAY) is UNFINISHED
    assert verbs.begin(bench.core, ROOT, Delete(jobs=("1[]",))) is UNFINISHED
    assert len(bench.core.works) == 2
    while bench.core.works:
        steps.go_on(bench.core)
    assert bench.core.jobs == {}
    assert bench.core.ended_count == MANY
    bench.check()


def test_a_job_that_a_command_under_way_has_taken_out_is_not_started_by_force() -> None:
    """Else the last row of the engine would be taken for its row."""
    bench = Bench()
    bench.do(ROOT, ARRAY)
    bench.make_pass()
    assert (
        verbs.begin(bench.core, ROOT, Alter(jobs=("1[]",), changes=Changes(slot_limit=200)))
        is UNFINISHED
    )
    for _ in range(3):
        steps.go_on(bench.core)
    out = [
        job
        for job in bench.core.members(bench.core.jobs[1])
        if job.state is BatchState.QUEUED and job.row < 0
    ]
    assert out
    said = bench.do(ROOT, ForceStart(jobs=(bench.core.id_of(out[0].key),)))
    assert isinstance(said, Outcomes)
    assert said.outcomes[0].error is not None
    assert "a command under way has taken it from the policy" in said.outcomes[0].error.message
    while bench.core.works:
        steps.go_on(bench.core)
    bench.check()


def test_a_command_that_names_many_jobs_takes_steps() -> None:
    bench = Bench()
    jobs = tuple(bench.submit() for _ in range(MANY))
    bench.make_pass()
    assert in_steps(bench, Hold(jobs=jobs)) > MANY // STEP
    assert in_steps(bench, Delete(jobs=jobs[:50])) == 1


OTHERS = {
    "a limit": EMULATED.replace('name = "batch"\n', 'name = "batch"\nmax_running = 5\n'),
    "a policy": EMULATED.replace("executor", 'policy = "fcfs"\nexecutor'),
    "hosts": EMULATED.replace("n[1-4]", "n[1-8]"),
    "a queue more": EMULATED + '[[queue]]\nname = "more"\n',
    "a pool more": EMULATED.replace(
        "[[queue]]", '[[pool]]\nname = "other"\nhosts = "m1"\ncpus = 2\n[[queue]]', 1
    ),
    "another pool for a queue": EMULATED.replace(
        '[[queue]]\nname = "batch"\n',
        (
            '[[pool]]\nname = "other"\nhosts = "m1"\ncpus = 2\n[[queue]]\nname = "batch"\npool = '
            '"other"\n'
        ),
    ),
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_another_configuration_is_an_entry_of_the_journal_and_needs_no_snapshot(text: str) -> None:
    bench = Bench()
    bench.do(ROOT, QueueControl(queues=("batch",), started=False))
    bench.do(ROOT, ARRAY)
    bench.do(ROOT, QueueControl(queues=("batch",), started=True))
    settings = parse_config(text, "the test")
    core = bench.core
    result = steps.begin(core, reconfigure(core, settings))
    bench.journal.append(journal_entry.reconfiguration(core.now, as_toml(settings)))
    while result is UNFINISHED:
        bench.submit("sleep 3\n")
        result = steps.go_on(core)
        bench.journal.append(journal_entry.step(core.now))
    bench.check()
    bench.wait(30)
    bench.check()
    assert bench.core.ended_count > 0
    core.take_effects()
    again = bench.replayed(bench.journal)
    assert as_toml(again.settings) == as_toml(settings)
    assert state_snapshot.dump(again) == state_snapshot.dump(core)
    fresh = Core(settings, load_policy)
    assert list(core.queues) == list(fresh.queues)
    for queue, other in zip(core.queues.values(), fresh.queues.values(), strict=True):
        assert (queue.settings, queue.pool, queue.place) == (
            other.settings,
            other.pool,
            other.place,
        )
    bench.wait(MANY * 20)
    assert core.jobs == {}


def test_a_queue_goes_to_another_pool_only_when_none_of_its_jobs_runs() -> None:
    """Else the end of such a job would be looked for in the pool in which it does not run."""
    bench = Bench()
    bench.submit("sleep 10\n")
    bench.make_pass()
    settings = parse_config(OTHERS["another pool for a queue"], "the test")
    with pytest.raises(
        InputError, match="queue batch cannot go to pool other while its jobs run in pool main"
    ):
        steps.whole(reconfigure(bench.core, settings))
    bench.wait(20)
    assert bench.core.jobs == {}
    steps.whole(reconfigure(bench.core, settings))
    bench.submit("sleep 10\n")
    bench.wait(20)
    bench.check()
    assert bench.core.ended_count == 2
