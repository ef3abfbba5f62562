"""Equal shares as an older snapshot holds them: the present policy goes on with them as the older one did.

Each file in ``images`` is the snapshot of an engine that an older version wrote, which kept an object for each job and each
host; the JSON beside it says what that version did afterwards (:func:`what_follows`).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qbatch.engine import snapshot
from qbatch.engine.engine import Engine
from qbatch.model.events import Event, Finished, HostOpened, Submitted
from qbatch.model.job import Job
from qbatch.policies import load_policy
from tests.engine.live import MACHINES, SECOND

IMAGES = Path(__file__).parent / "images"
POLICY = "equispatial:interval=1,over50=yes,quantum=2,memory=300"
MACHINE = MACHINES["hosts with memory"]


def what_follows(engine: Engine) -> list[list[object]]:
    """Drive an engine on by a fixed rule and return what it did, round by round."""
    told: list[list[object]] = []
    for step in range(60):
        assert engine.now is not None
        at, timer = engine.now + SECOND // 2, engine.next_timer()
        at = at if timer is None else min(at, timer)
        events: list[Event] = [HostOpened(host) for host in sorted(engine.closed) if step == 10]
        running = sorted(engine.view().running)
        if step % 3 == 2 and running:
            events.append(Finished(running[step % len(running)]))
        if step in (5, 15):
            events.append(Submitted(Job(number=1000 + step, submit=at, procs=3, estimate=9 * SECOND, memory=1000)))
        done = engine.handle(at, events)
        told.append([done.at, [repr(action) for action in done.actions]])
    return told


@pytest.mark.parametrize("name", ["shares-1", "shares-2", "shares-3"])
def test_an_old_snapshot_goes_on_as_it_would_have_gone_on(name: str) -> None:
    data = (IMAGES / f"{name}.snapshot").read_bytes()
    expected = json.loads((IMAGES / f"{name}.json").read_text())
    engine = snapshot.load(MACHINE, load_policy(POLICY), data, is_audited=True)
    told = {str(row): engine.explain(row).text for row in engine.view().queue.tolist()}
    assert told == expected["explained"]
    assert what_follows(engine) == expected["follows"]


@pytest.mark.parametrize("name", ["shares-1", "shares-2", "shares-3"])
def test_it_is_written_again_in_the_present_form(name: str) -> None:
    policy = load_policy(POLICY)
    engine = snapshot.load(MACHINE, policy, (IMAGES / f"{name}.snapshot").read_bytes())
    engine.handle((engine.now or 0) + 1, [])
    data = snapshot.dump(engine)
    assert b"earlier_shares" not in data
    again = snapshot.load(MACHINE, policy, data)
    assert what_follows(again) == what_follows(engine)
