"""Valid verbs with hostile values for every field: each is answered, nothing fails inside, the
state is whole afterwards."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.wire.errors import Refusal
from qbatch.wire.frames import encode
from qbatch.wire.resources import check_resources, listed_resources, parse_demand
from tests.daemon.harness import Daemon, emulated
from tests.daemon.hostile.hostile_requests import KINDS, RESOURCES, WORDS, Hostile
from tests.daemon.hostile.tools import Raw, check
from tests.harness import size

CONFIG = emulated(
    queues="""
[[queue]]
name = "narrow"
max_running = 2
max_running_per_user = 1
"""
)
AGAIN = (
    b'{"verb":"queue-control","queues":["batch","narrow"],"enabled":true,"started":true}',
    b'{"verb":"fault","kind":"clear"}',
    b'{"verb":"host-control","hosts":["n1","n2","n3"],"action":"up"}',
    b'{"verb":"time","action":"play","speed":60}',
)
"""Jobs can be queued, hosts are up, time moves: otherwise hostile frames soon stop all of it."""

BATCH = 50
LAST = 1 << 31


def test_every_field_of_every_verb_is_drawn() -> None:
    drawn: dict[str, set[str]] = {verb: set() for verb in KINDS}
    hostile = Hostile(0)
    for _ in range(5000):
        body = msgspec.json.decode(hostile.request())
        drawn[body["verb"]] |= set(body)
    for verb, kind in KINDS.items():
        assert drawn[verb] >= {field.name for field in msgspec.structs.fields(kind)} - {"v"}, verb


@pytest.mark.parametrize("mode", ["x60", "virtual"])
def test_a_daemon_answers_hostile_values_and_nothing_fails_inside(
    tmp_path: Path, mode: str
) -> None:
    count = size(1000, 500_000)
    codes: Counter[str] = Counter()
    with Daemon(tmp_path, "--time", mode, config=CONFIG).start() as daemon:
        hostile, raw = Hostile(20_261_122), Raw(daemon.socket, 120.0)
        for number in range(0, count, BATCH):
            bodies = [hostile.request() for _ in range(BATCH)]
            raw.socket.sendall(
                b"".join(map(encode, [*(AGAIN if number // BATCH % 2 else ()), *bodies]))
            )
            raw.send({"verb": "hello", "id": LAST})
            while (reply := raw.receive()) is not None and reply.get("id") != LAST:
                codes[reply.get("error", {}).get("code", "taken")] += 1
            assert reply is not None, (number, daemon.log()[-3000:])
        raw.close()
        log = daemon.log()
        assert "Traceback" not in log, log[-3000:]
        assert "integrity ok" in check(daemon)
        assert codes["taken"] > count // 10, codes
        assert codes["bad-value"] > count // 20, codes
        daemon.run("qbatch", "time", "pause")
        daemon.run("qbatch", "fault", "clear")  # one of them may make every answer about jobs wait
        before = daemon.jobs(finished="no")
        assert daemon.kill() == -signal.SIGKILL
        daemon.start("--paused")
        assert "integrity ok" in check(daemon)
        after = daemon.jobs(finished="no")
        assert {name: (job.state, job.name) for name, job in after.items()} == {
            name: (job.state, job.name) for name, job in before.items()
        }


@given(
    st.dictionaries(
        st.sampled_from(sorted(RESOURCES)),
        st.text(max_size=12) | st.sampled_from(WORDS),
        max_size=3,
    ),
    st.data(),
)
@settings(max_examples=size(200, 50_000), deadline=None)
def test_resources_that_are_taken_can_be_shown(
    resources: dict[str, str], data: st.DataObject
) -> None:
    plausible = {
        name: data.draw(st.sampled_from(RESOURCES[name]))
        for name in resources
        if data.draw(st.booleans())
    }
    asked = {**resources, **plausible}
    try:
        check_resources(asked)
        demand = parse_demand(asked)
    except ValueError as error:
        reason = Refusal("bad-value", str(error)).record.message
    else:
        reason = ""
    if reason:
        assert reason.isprintable()
        return
    shown = listed_resources(asked, demand, 60_000_000)
    assert shown["walltime"] == "00:01:00"
    assert all(text.isprintable() for text in shown.values())
