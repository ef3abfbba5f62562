"""The machine's clock is wrong for a while, and is put right: while the daemon runs, and between
two runs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from qbatch.wire.records import ServerRecord
from qbatch.wire.requests import ServerStatus
from tests.daemon.harness import Daemon
from tests.daemon.hostile.tools import EMULATED, until

HOUR, DAY, YEAR = 3600, 86_400, 365 * 86_400


class Shifted(Daemon):
    """A daemon on a machine with a wrong clock (:mod:`tests.daemon.hostile.shifted_daemon`)."""

    def command(self, state: Path | None = None) -> list[str]:
        """Return the command that serves under the wrong clock."""
        words = super().command(state)
        words[words.index("qbatch")] = "tests.daemon.hostile.shifted_daemon"
        return words

    def set_clock(self, seconds: int) -> None:
        """Let the machine's clock be wrong by so many seconds."""
        beside = self.directory / "shift.new"
        beside.write_text(str(seconds), encoding="ascii")
        beside.replace(self.directory / "shift")

    def status(self) -> ServerRecord:
        """Return what it says of itself."""
        with self.session() as session:
            return session.ask(ServerStatus(), ServerRecord)

    def is_right(self) -> bool:
        """Whether its clock goes with the right time."""
        found = self.status().clock
        return abs(found.now / 1e6 - time.time()) < HOUR / 2 and found.ahead == 0


@pytest.fixture
def daemon(tmp_path: Path) -> Shifted:
    return Shifted(tmp_path, config=EMULATED)


def test_a_server_whose_clock_was_a_year_ahead_lives_in_the_right_year_after_its_next_start(
    daemon: Shifted,
) -> None:
    daemon.set_clock(YEAR)
    with daemon:
        runs, held = daemon.submit("sleep 3000\n"), daemon.submit("true\n", hold="u")
        daemon.until(runs, "R")
        assert daemon.status().clock.now / 1e6 > time.time() + YEAR / 2
        daemon.kill()
        daemon.set_clock(0)
        daemon.start()
        assert daemon.is_right()
        assert "ahead of the machine's" in daemon.log()
        tomorrow = daemon.submit("true\n", not_before=int((time.time() + DAY) * 1e6))
        soon = daemon.submit("sleep 1\n", not_before=int((time.time() + 2) * 1e6))
        daemon.until(soon, "F")
        jobs = daemon.jobs()
        assert jobs[tomorrow].state == "W"
        assert jobs[held].state == "H"
        assert jobs[runs].state == "R"
        for name in (runs, held, tomorrow):
            assert abs((jobs[name].submitted or 0) / 1e6 - time.time()) < HOUR / 2
        assert abs((jobs[runs].started or 0) / 1e6 - time.time()) < HOUR / 2
        days = {
            time.strftime("%Y%m%d", time.localtime(time.time() + shift)) for shift in (0, -HOUR)
        }
        text = "".join(
            (daemon.state / "accounting" / day).read_text(encoding="utf-8")
            for day in days
            if (daemon.state / "accounting" / day).exists()
        )
        assert f";Q;{tomorrow};" in text
        assert f";E;{soon};" in text
        assert daemon.run("qbatch", "check").stdout
        # Once more: what was set back is kept.
        daemon.kill()
        daemon.start()
        assert daemon.is_right()
        assert daemon.jobs()[tomorrow].state == "W"


def test_a_running_server_follows_its_machines_clock_forward_and_says_that_it_is_ahead_of_it_after_a_step_back(
    daemon: Shifted,
) -> None:
    daemon.set_clock(0)
    with daemon:
        tomorrow = daemon.submit("true\n", not_before=int((time.time() + DAY - HOUR) * 1e6))
        daemon.set_clock(DAY)
        daemon.until(tomorrow, "F")
        assert daemon.status().problems == ()
        daemon.set_clock(0)
        until(lambda: daemon.status().clock.ahead > 23 * HOUR * 1_000_000, "the step back is seen")
        assert "ahead of it until the server is started again" in daemon.status().problems[0]
        assert "was set back" in daemon.run("qbatch", "doctor", code=1).stdout
        assert "was set back" in daemon.run("qbatch", "status").stdout
        assert "was set back by 24:00:00" in daemon.log()
        assert daemon.until(daemon.submit("sleep 1\n"), "F").exit_status == 0
        daemon.kill()
        daemon.start()
        assert daemon.is_right()
        assert daemon.status().problems == ()
