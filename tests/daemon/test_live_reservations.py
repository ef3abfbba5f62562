"""``pbs_rsub``, ``pbs_rstat``, ``pbs_rdel``, ``qbatch reserve`` and ``qbatch maintenance`` against a
real server: what they do holds after a crash."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.daemon.harness import Daemon, emulated

WHOLE = {"select": "4:ncpus=4", "walltime": "100"}


def paused(directory: Path) -> Daemon:
    return Daemon(directory, "--time", "virtual", "--paused", "--origin", "0", config=emulated())


def test_a_reservation_is_kept_over_a_crash(tmp_path: Path) -> None:
    with paused(tmp_path) as daemon:
        daemon.run("qbatch", "time", "until", "1")
        said = daemon.run(
            "qbatch", "reserve", "n[1-4]", "--start", "+99", "--duration", "100", "--name", "course"
        )
        assert said.stdout == "course\n"
        assert (
            "n[1-4] from 1970-01-01 00:01:40 for 0:01:40; submit with qsub -q course" in said.stderr
        )
        inside = daemon.submit("x\n", queue="course", resources={"ncpus": "4", "walltime": "50"})
        fits = daemon.submit("x\n", resources=WHOLE | {"walltime": "99"}, runtime=1_000_000)
        waits = daemon.submit("x\n", resources=WHOLE, runtime=1_000_000)
        daemon.run("qbatch", "time", "until", "3")
        said = daemon.run("qbatch", "explain", inside).stdout
        assert "its reservation course begins in 0:01:38" in said
        said = daemon.run("qbatch", "explain", "course").stdout
        assert said.startswith("reservation course.")
        assert "(confirmed): will keep n[1-4] from 1970-01-01 00:01:40" in said
        assert "reservations keep it from n[1-4]" in daemon.run("qbatch", "explain", waits).stdout
        daemon.kill()
        daemon.start("--time", "virtual", "--paused")
        shown = json.loads(daemon.run("qbatch", "reservations", "--json").stdout)["reservations"]
        assert [(each["name"], each["state"]) for each in shown] == [("course", "confirmed")]
        daemon.run("qbatch", "time", "until", "150")
        assert "RN" in daemon.run("pbs_rstat", "course").stdout
        daemon.run("qbatch", "time", "until", "1000")
        ended = daemon.jobs(inside, fits, waits)
        started = [ended[job].started for job in (fits, inside, waits)]
        assert started == [1_000_000, 100_000_000, 200_000_000]
        assert "there are no reservations" in daemon.run("qbatch", "reservations").stderr
        assert daemon.run("qbatch", "check").returncode == 0


def test_the_commands_of_pbs_make_show_and_end_reservations(tmp_path: Path) -> None:
    with paused(tmp_path) as daemon:
        daemon.run("qbatch", "time", "until", "1")
        year = "203001010000"
        made = daemon.run(
            "pbs_rsub", "-R", year, "-D", "1:00:00", "-l", "select=2:ncpus=4", "-N", "x"
        )
        assert made.stdout == "R1.qbatch UNCONFIRMED\n"
        made = daemon.run(
            "pbs_rsub", "-I", "5", "-E", year, "-l", "walltime=60", "-r", "FREQ=DAILY;COUNT=2"
        )
        assert made.stdout == "R2.qbatch CONFIRMED\n"
        denied = daemon.run("pbs_rsub", "-R", year, "-D", "60", "-l", "select=3:ncpus=4", code=233)
        assert denied.stderr.startswith("pbs_rsub: the 2 hosts that are free from 2030-01-01")
        lines = daemon.run("pbs_rstat").stdout.splitlines()
        assert lines[0] == (
            "Resv ID         Queue         User     State             Start / Duration / End"
        )
        assert re.fullmatch(
            r"R2\.qbatch       R2            root     CO    Dec 31 2029 23:59 / 60 / Jan 01 2030 00:00",
            lines[2],
        )
        full = daemon.run("pbs_rstat", "-f", "R1").stdout
        for line in (
            "Resv ID: R1.qbatch",
            "    Reserve_Name = x",
            "    reserve_state = RESV_CONFIRMED",
            "    reserve_duration = 3600",
            "    Resource_List.select = 2:ncpus=4",
            "    resv_nodes = (n1)+(n2)",
        ):
            assert line in full.splitlines()
        assert "     resv = R1.qbatch\n" in daemon.run("pbsnodes", "n2").stdout
        waiting = daemon.run("qsub", "-q", "R1", "-l", "ncpus=1", stdin="x\n").stdout.strip()
        assert daemon.run("pbs_rstat", "-B", "R9", "R2", code=236).stdout == "Resv ID: R2.qbatch\n"
        daemon.run("pbs_rdel", "R1.qbatch")
        assert daemon.jobs(waiting)[waiting].state == "F"
        assert "Unknown queue" in daemon.run("qsub", "-q", "R1", stdin="x\n", code=170).stderr
        said = daemon.run("pbs_rdel", "R1", code=236).stderr
        assert said == "pbs_rdel: Unknown Reservation Id R1 (known: R2)\n"


def test_maintenance_keeps_hosts_free(tmp_path: Path) -> None:
    with paused(tmp_path) as daemon:
        daemon.run("qbatch", "time", "until", "1")
        said = daemon.run("qbatch", "maintenance", "all", "--start", "+49", "--duration", "50")
        assert said.stdout == "M1\n"
        assert "no job runs there" in said.stderr
        waits = daemon.submit("x\n", resources=WHOLE, runtime=1_000_000)
        daemon.run("qbatch", "time", "until", "200")
        assert daemon.jobs(waits)[waits].started == 100_000_000


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("pbs_rsub",), "give -R and -E, or a duration"),
        (("pbs_rsub", "-D", "x"), "Bad time specification"),
        (("pbs_rsub", "-R", "99", "-D", "5"), "illegal -R value"),
        (("pbs_rsub", "-D", "5", "-r", "FREQ=YEARLY"), "write FREQ=HOURLY, DAILY or WEEKLY"),
        (("pbs_rsub", "-D", "5", "-r", "FREQ=DAILY;UNTIL=2030"), "COUNT=number"),
        (("pbs_rsub", "-D", "5", "-G", "staff"), "groups cannot be named"),
        (("pbs_rsub", "-D", "5", "-l", "select=0"), "select"),
        (("qbatch", "reserve", "--duration", "5"), "name hosts, or what they must have together"),
        (("qbatch", "reserve", "n1", "--duration", "x"), "'x' is no time"),
        (
            ("qbatch", "reserve", "n1", "--duration", "5", "--start", "noon"),
            "is no time; write it as",
        ),
        (("qbatch", "reserve", "n1", "--duration", "5", "--times", "2"), "goes with a repetition"),
        (("qbatch", "reservations", "--delete"), "needs the names of reservations"),
        (("qbatch", "reservations", "x"), "Unknown Reservation Id x"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    command: tuple[str, ...], said: str, server: Daemon
) -> None:
    done = server.run(*command, code=None)
    assert done.returncode not in (0, 1 if command[0] == "qbatch" else 0)
    assert said in done.stderr
    assert len(done.stderr.split("usage:")[0].splitlines()) == 1


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Daemon:  # type: ignore[misc]
    with paused(tmp_path_factory.mktemp("server")) as daemon:
        yield daemon
