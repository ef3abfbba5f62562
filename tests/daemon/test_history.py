"""The history of jobs that have ended."""

from __future__ import annotations

from pathlib import Path

from qbatch.wire.records import ClockRecord, Jobs
from qbatch.wire.requests import History, Time
from tests.daemon.harness import Daemon, emulated


def test_what_has_ended_by_the_time_that_is_shown_is_in_the_history(tmp_path: Path) -> None:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=emulated()
    ) as daemon:
        for number in range(1, 21):
            daemon.submit(runtime=10_000_000)
            with daemon.session() as session:
                session.ask(Time(action="until", at=number * 100_000_000), ClockRecord)
                while session.ask(Time(), ClockRecord).now < number * 100_000_000:
                    pass
                assert len(session.ask(History(limit=100), Jobs).jobs) == number
