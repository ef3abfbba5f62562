"""The stream of events begins where it says, or says that it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from qbatch.wire.errors import Refusal
from qbatch.wire.records import Done
from qbatch.wire.requests import Subscribe
from tests.daemon.harness import Daemon, emulated


def test_a_stream_goes_on_after_the_last_event_and_refuses_a_gap(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--time", "virtual", "--paused", config=emulated()) as daemon:
        daemon.submit()
        with daemon.session() as session:
            last = int(session.ask(Subscribe(), Done).text)
        assert last > 0
        with daemon.session() as session:
            assert int(session.ask(Subscribe(after=last), Done).text) == last
            daemon.submit()
            event = next(each for each in session.events() if each.kind != "clock")
            assert (event.number, event.kind) == (last + 1, "submitted")
        for after, text in (
            (last - 1, "have come since and are not kept"),
            (last + 9, "have never been"),
        ):
            with daemon.session() as session:
                with pytest.raises(Refusal, match=text) as caught:
                    session.ask(Subscribe(after=after), Done)
                assert caught.value.code == "bad-value"
        # What went before a restart is known after it.
        daemon.kill()
        daemon.start()
        with daemon.session() as session:
            assert int(session.ask(Subscribe(after=last + 1), Done).text) == last + 1
