"""Holds the oracle against every recording of a real Slurm 22.05.8: exact counts, so that each loss is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.policies.slurm_oracle.clock import passes_within, starts_within
from tests.policies.slurm_oracle.recording import read_recording
from tests.policies.slurm_oracle.replay import Count, Replay, Report

ROOT = Path(__file__).resolve().parents[3]
PLACES = [ROOT.parent / "shared", Path("/work/shared")]
FOLDER = next(
    (
        place / "recordings/slurm-22.05"
        for place in PLACES
        if (place / "recordings/slurm-22.05").is_dir()
    ),
    None,
)

# What is compared, in this order: starts (same pass, partition), their nodes, entries that backfill looks at, instants
# and nodes it tries, planned starts, planned ends, planned nodes and lines of the map. Then come first priorities,
# values of sprio and of sshare, refusals, steps of preemption, reasons, and planned starts that squeue shows.
COLUMNS = [
    "starts",
    "start_nodes",
    "tests",
    "tries",
    "plan_starts",
    "plan_ends",
    "plan_nodes",
    "maps",
    "first_priorities",
    "sprio",
    "sshare",
    "refusals",
    "preemptions",
    "reasons",
    "squeue_starts",
]
EXPECTED: dict[str, list[tuple[int, int]]] = {
    "arrays-deps": [
        (58, 58),
        (58, 58),
        (179, 179),
        (182, 182),
        (153, 153),
        (153, 153),
        (153, 153),
        (724, 724),
        (39, 39),
        (0, 0),
        (0, 0),
        (40, 40),
        (0, 0),
        (2175, 2177),
        (2177, 2177),
    ],
    "backfill-basic": [
        (40, 40),
        (40, 40),
        (738, 738),
        (938, 938),
        (660, 660),
        (660, 660),
        (660, 660),
        (4605, 4605),
        (40, 40),
        (0, 0),
        (0, 0),
        (40, 40),
        (0, 0),
        (1939, 1939),
        (1939, 1939),
    ],
    "builtin-fifo": [
        (40, 40),
        (40, 40),
        (0, 0),
        (0, 0),
        (0, 0),
        (0, 0),
        (0, 0),
        (0, 0),
        (40, 40),
        (0, 0),
        (0, 0),
        (40, 40),
        (0, 0),
        (2158, 2158),
        (2158, 2158),
    ],
    "limits": [
        (49, 49),
        (49, 49),
        (83, 83),
        (68, 68),
        (0, 0),
        (0, 0),
        (0, 0),
        (19, 19),
        (54, 54),
        (1116, 1116),
        (2464, 2464),
        (61, 61),
        (0, 0),
        (962, 962),
        (962, 962),
    ],
    "multifactor": [
        (60, 60),
        (60, 60),
        (615, 615),
        (726, 726),
        (605, 605),
        (605, 605),
        (605, 605),
        (3865, 3865),
        (60, 60),
        (4158, 4158),
        (1540, 1540),
        (60, 60),
        (0, 0),
        (2748, 2748),
        (2748, 2748),
    ],
    "partitions-gpu": [
        (57, 57),
        (57, 57),
        (138, 138),
        (170, 170),
        (106, 106),
        (106, 106),
        (106, 106),
        (507, 507),
        (60, 60),
        (0, 0),
        (0, 0),
        (65, 65),
        (0, 0),
        (821, 821),
        (821, 821),
    ],
    "preempt-part": [
        (18, 18),
        (18, 18),
        (16, 16),
        (16, 16),
        (9, 9),
        (9, 9),
        (9, 9),
        (38, 38),
        (17, 17),
        (0, 0),
        (0, 0),
        (17, 17),
        (10, 10),
        (112, 112),
        (112, 112),
    ],
    "preempt-qos": [
        (20, 20),
        (20, 20),
        (51, 51),
        (56, 56),
        (48, 48),
        (48, 48),
        (48, 48),
        (200, 200),
        (18, 18),
        (243, 243),
        (1003, 1003),
        (18, 18),
        (3, 3),
        (457, 457),
        (457, 457),
    ],
    "reservation": [
        (22, 22),
        (22, 22),
        (227, 227),
        (251, 251),
        (205, 205),
        (205, 205),
        (205, 205),
        (895, 895),
        (24, 24),
        (0, 0),
        (0, 0),
        (26, 26),
        (0, 0),
        (834, 834),
        (834, 834),
    ],
}


@pytest.mark.skipif(FOLDER is None, reason="../shared/recordings is not there")
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_recording(name: str) -> None:
    """Every figure of a recording is exactly as known."""
    assert FOLDER is not None
    report = Replay(read_recording(FOLDER / name)).run()
    assert figures(report) == dict(zip(COLUMNS, EXPECTED[name], strict=True))
    assert report.false_starts == []


def figures(report: Report) -> dict[str, tuple[int, int]]:
    """Equal and total of each comparison."""
    counts: dict[str, Count] = vars(report)
    return {column: (counts[column].equal, counts[column].total) for column in COLUMNS}


# Passes of which the clock of the oracle has one of the same kind within 1.1 s, and starts within one bf_interval when
# the oracle runs by that clock alone. A tick that comes just after an end instead of before it moves a start to
# the next pass, and all that follows with it. So the second figure is far from the first.
CLOCK: dict[str, tuple[tuple[int, int], tuple[int, int] | None]] = {
    "arrays-deps": ((85, 88), (58, 58)),
    "backfill-basic": ((122, 126), (26, 40)),
    "builtin-fifo": ((69, 71), (40, 40)),
    "limits": ((64, 66), (49, 49)),
    "multifactor": ((113, 118), (52, 60)),
    "partitions-gpu": ((77, 79), (57, 57)),
    "preempt-part": ((58, 61), None),
    "preempt-qos": ((64, 65), None),
    "reservation": ((115, 116), (22, 22)),
}
PREEMPTING = ("preempt-part", "preempt-qos")


@pytest.mark.skipif(FOLDER is None, reason="../shared/recordings is not there")
@pytest.mark.parametrize("name", sorted(CLOCK))
def test_clock(name: str) -> None:
    """When passes run, by the rules of the clock."""
    assert FOLDER is not None
    recording = read_recording(FOLDER / name)
    found = passes_within(recording, 1.1)
    interval = int(recording.site.scheduler.get("bf_interval", "30"))
    begun = None if name in PREEMPTING else starts_within(recording, interval)
    figures_found = (found.equal, found.total), (begun.equal, begun.total) if begun else None
    assert figures_found == CLOCK[name]
