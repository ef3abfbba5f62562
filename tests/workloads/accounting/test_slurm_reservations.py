"""The reservations of ``scontrol -o show reservation``."""

from __future__ import annotations

from pathlib import Path

import pytest

from qbatch.model.errors import InputError
from qbatch.model.machine import Host, Machine, Reservation
from qbatch.model.machine_file import machine_as_toml, parse_machine
from qbatch.workloads.accounting.slurm_reservations import read_reservations

MACHINE = Machine(tuple(Host(f"n{number}", 8) for number in range(1, 5)), chunked=True)
FIRST = (
    "ReservationName=r1 StartTime=2026-11-27T20:31:51 EndTime=2026-11-27T20:33:51 "
    "Duration=00:02:00 Nodes=n[1-2] NodeCnt=2 CoreCnt=16 Features=(null) PartitionName=(null) "
    "Flags=SPEC_NODES TRES=cpu=16 Users=u2,u3 Groups=(null) Licenses=(null) State=INACTIVE"
)
MAINTENANCE = (
    "ReservationName=m1 StartTime=2026-11-27T20:34:52 EndTime=2026-11-27T20:35:52 "
    "Nodes=n[1-4] CoreCnt=32 Flags=MAINT,IGNORE_JOBS,WEEKLY,SPEC_NODES,ALL_NODES Users=root"
)
CORES = (
    "ReservationName=cores StartTime=2026-11-27T20:36:02 EndTime=2026-11-27T20:37:02 Nodes=n1 "
    "NodeCnt=1 CoreCnt=4 Flags=   NodeName=n1 CoreIDs=0-3 Users=u1"
)
MAGNETIC = MAINTENANCE.replace("m1", "m2").replace("MAINT", "MAGNETIC,FLEX")


def test_reservations_of_whole_nodes_are_read_and_others_are_named(tmp_path: Path) -> None:
    path = tmp_path / "res.txt"
    old = FIRST.replace("20:33:51", "20:39:00")
    path.write_text("\n".join(("=== t=1 $ scontrol", old, FIRST, MAINTENANCE, CORES, MAGNETIC)))
    found, remarks = read_reservations(str(path), MACHINE)
    assert found == (
        Reservation("r1", (0, 1), "2026-11-27T20:31:51", 120_000_000, users=("u2", "u3")),
        Reservation(
            "m1",
            (0, 1, 2, 3),
            "2026-11-27T20:34:52",
            60_000_000,
            "weekly",
            ("root",),
            is_maintenance=True,
        ),
        Reservation(
            "m2",
            (0, 1, 2, 3),
            "2026-11-27T20:34:52",
            60_000_000,
            "weekly",
            ("root",),
            is_flexible=True,
        ),
    )
    assert remarks == [
        f"reservation cores ({path}): left out, it has no whole nodes",
        "reservation m2: MAGNETIC does not count",
    ]
    path.write_text(FIRST.replace("u2,u3", "-u2"))
    [found_again], remarks = read_reservations(str(path), MACHINE)
    assert found_again.users == ()
    assert remarks == ["reservation r1: users that are left out (-u2) do not count"]
    machine = Machine(MACHINE.hosts, chunked=True, reservations=found)
    assert parse_machine("\n".join(machine_as_toml(machine)), "again") == machine


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (FIRST.replace("n[1-2]", "n[1-9]"), "line 1: there is no node 'n5' in the machine"),
        (FIRST.replace("2026-11-27T20:31:51", "soon"), "line 1: StartTime 'soon' is not a time"),
        (FIRST.replace("20:33:51", "20:30:00"), "line 1: the reservation r1 ends before it begins"),
        ("nothing", "no line begins with ReservationName="),
    ],
)
def test_a_bad_file_is_refused_with_line_and_reason(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "res.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=error.replace("(", r"\(")):
        read_reservations(str(path), MACHINE)
    path.write_text("No reservations in the system")
    assert read_reservations(str(path), MACHINE) == ((), [])
