"""A state that is set back is the one that it would have been, had the clock been right from the
beginning."""

from __future__ import annotations

import pytest

from qbatch.daemon.core import state_snapshot
from qbatch.daemon.core.setting_back import set_back
from qbatch.model.events import Woken
from qbatch.wire.requests import Alter, Changes, Delete, Hold, Rerun, Signal
from tests.daemon.core.driver import EMULATED, ROOT, SECOND, Bench

YEAR = 365 * 86_400 * SECOND


def lived(policy: str, begin: int) -> Bench:
    """Return a server in the midst of things, which began at an instant."""
    bench = Bench(EMULATED.replace("executor", f'policy = "{policy}"\nexecutor'))
    bench.now = begin
    runs = [bench.submit("sleep 100\n", resources={"ncpus": "3"}) for _ in range(8)]
    bench.submit("sleep 50\n", array="1-20")
    bench.submit("true\n", not_before=begin + 500 * SECOND)
    bench.submit("true\n", hold="u")
    for _ in range(5):
        bench.submit("sleep 10\n", queue="narrow")
    bench.wait(20)
    bench.do(ROOT, Signal(jobs=(runs[0],), signal="suspend"))
    bench.do(ROOT, Rerun(jobs=(runs[1],)))
    bench.do(ROOT, Hold(jobs=(runs[7],)))
    bench.wait(10)
    bench.do(ROOT, Signal(jobs=(runs[0],), signal="resume"))
    bench.do(ROOT, Signal(jobs=(runs[2],), signal="suspend"))
    bench.do(ROOT, Alter(jobs=(runs[6],), changes=Changes(resources={"walltime": "3:00"})))
    bench.do(ROOT, Delete(jobs=(runs[5],)))
    bench.submit("sleep 5\n")
    bench.outbox.clear()
    return bench


@pytest.mark.parametrize("policy", ["easy", "conservative", "lxf-backfill", "immediate", "scojo"])
def test_a_server_that_is_set_back_goes_on_as_one_whose_clock_was_right(policy: str) -> None:
    late, right = lived(policy, 2 * YEAR), lived(policy, YEAR)
    set_back(late.core, YEAR)
    late.now -= YEAR
    # What has ended keeps the instants of that time; and the policy of the other begins anew as
    # well.
    for pool in right.core.pools:
        pool.engine.exchange_policy(pool.policy)
        pool.events.append(Woken())
    for job in right.core.jobs.values():
        for one in right.core.members(job):
            one.promised = None
    right.core.is_dirty = True
    for bench in (late, right):
        bench.check()
    assert whole(late) == whole(right)
    for bench in (late, right):
        bench.journal.clear()
        bench.wait(1000)
        bench.check()
    assert whole(late) == whole(right)
    assert late.core.ended_count > 20
    after = {name: job for name, job in late.ended.items() if (job.ended or 0) < 2 * YEAR}
    assert len(after) > 20
    assert after == {name: right.ended[name] for name in after}


def whole(bench: Bench) -> bytes:
    """Return the whole state."""
    bench.core.take_effects()
    return state_snapshot.dump(bench.core)
