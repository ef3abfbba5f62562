"""The users of a reservation, and the names of users in the header of a log."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from qbatch.cli.main import run
from qbatch.model.machine import Reservation
from qbatch.workloads.user_names import may_name

SITE = """schema = 2
[[host]]
name = "n[1-2]"
cpus = 4
[[reservation]]
name = "course"
hosts = ["n1"]
start = 0
duration = 1000
users = ["ann", "7"]
"""
NAMES = "; Note: user 1 is ann\n; Note: user 2 is bob\n"


@pytest.mark.parametrize(
    ("users", "user", "may"),
    [
        (("ann", "7"), 1, True),
        (("ann@host", "7"), 1, True),
        (("ann", "7"), 7, True),
        (("ann", "7"), 2, False),
        (("ann", "7"), 5, None),
        (("6", "7"), 5, False),
        (("1",), 1, True),
    ],
)
def test_a_user_is_a_name_or_a_number_of_the_log(
    users: tuple[str, ...], user: int, may: bool | None
) -> None:
    kept = Reservation("course", (0,), "0", 1, users=users)
    assert may_name(kept, user, {1: "ann", 2: "bob"}) is may


def replay(folder: Path, header: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Replay four jobs that name the reservation, of the users 1, 2, 7 and 5; return what it
    said."""
    jobs = "".join(
        f"{job} 0 -1 10 1 -1 -1 1 20 -1 1 {user} 1 -1 1 -1 -1 -1\n"
        for job, user in enumerate((1, 2, 7, 5), 1)
    )
    (folder / "log.swf").write_text(f"; MaxProcs: 8\n{header}{jobs}")
    (folder / "site.toml").write_text(SITE)
    lines = "".join(f"{job},1,course\n" for job in range(1, 5))
    (folder / "log.csv").write_text(f"job,nodes,reservation\n{lines}")
    asked = ["replay", "log.swf", "--machine", "site.toml", "--resources", "log.csv"]
    assert run([*asked, "-p", "easy", "--skipped", "no.csv", "--out", "out"]) == 0
    return capsys.readouterr().err


def test_jobs_of_other_users_are_skipped_counted_and_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = replay(tmp_path, NAMES, capsys)
    assert "1 jobs skipped: not a user of its reservation (--skipped FILE lists them)" in said
    assert "whether 1 jobs may name their reservation is not known, and they may run" in said
    [skipped] = csv.DictReader(Path("no.csv").read_text().splitlines())
    assert (skipped["job_id"], skipped["reason"]) == ("2", "not_a_user_of_its_reservation")


def test_a_log_without_names_is_checked_by_numbers_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = replay(tmp_path, "", capsys)
    assert "skipped" not in said
    assert "whether 3 jobs may name their reservation is not known" in said
