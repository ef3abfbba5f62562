"""The table of the states of a batch job: what may follow what, and that nothing else does."""

from __future__ import annotations

import pytest

from qbatch.daemon.core.job import NEXT, ON_HOSTS, OVER, SUBSTATES, WAITING, BatchState
from qbatch.wire import pieces, requests
from tests.daemon.core.driver import EMULATED, Bench

EDGES = [
    (state, cause, after) for cause, by_state in NEXT.items() for state, after in by_state.items()
]


def test_every_state_is_of_one_kind_and_has_a_letter_and_a_substate() -> None:
    kinds = [*WAITING, *ON_HOSTS, *OVER, BatchState.BEGUN]
    assert sorted(kinds, key=list(BatchState).index) == list(BatchState)
    assert set(SUBSTATES) == set(BatchState)
    assert {state.letter for state in BatchState} <= set(requests.STATES)
    assert {state.letter for state in ON_HOSTS} == set(pieces.ON_HOSTS)


def test_every_state_is_reached_from_queued_and_only_ends_are_never_left() -> None:
    reached = {BatchState.QUEUED}
    for _ in BatchState:
        reached |= {after for state, _, after in EDGES if state in reached}
    assert reached == set(BatchState)
    assert set(BatchState) - {state for state, _, _ in EDGES} == set(OVER)


def test_hosts_are_given_by_a_start_only_and_an_array_that_has_begun_goes_on_to_its_end() -> None:
    gives = {
        (state, cause)
        for state, cause, after in EDGES
        if state not in ON_HOSTS and after in ON_HOSTS
    }
    assert gives == {(BatchState.QUEUED, "started")}
    assert {after for state, _, after in EDGES if state is BatchState.BEGUN} == {
        BatchState.BEGUN,
        BatchState.FINISHED,
    }


@pytest.mark.parametrize("cause", list(NEXT))
@pytest.mark.parametrize("state", list(BatchState))
def test_a_change_that_is_not_in_the_table_is_refused_and_counts_nothing(
    state: BatchState, cause: str
) -> None:
    bench = Bench(EMULATED)
    bench.submit("sleep 10\n", resources={"ncpus": "1", "walltime": "20"})
    job, queue = bench.core.jobs[1], bench.core.queues["batch"]
    queue.counts = {state: 1}
    job.state = state
    if state in NEXT[cause]:
        after = NEXT[cause][state]
        bench.core.set_state(job, cause)
        assert job.state is after
        assert {each: count for each, count in queue.counts.items() if count} == (
            {} if after in OVER else {after: 1}
        )
        return
    with pytest.raises(RuntimeError, match=rf"is {state.name.lower()}; it cannot be {cause}"):
        bench.core.set_state(job, cause)
    assert (job.state, queue.counts) == (state, {state: 1})
