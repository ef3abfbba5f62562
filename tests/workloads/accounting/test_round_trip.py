"""Jobs -> accounting text of three systems -> import -> the same jobs, and a log that everything
else takes."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.workloads import read_log
from qbatch.workloads.accounting import Imported
from qbatch.workloads.findings import findings
from qbatch.workloads.header import Header, machine_procs
from qbatch.workloads.swf_writer import write_log

from .samples import BASE, SACCT_HEADER, Sample, column, imported, pbs_pro, slurm, torque

WRITERS: dict[str, tuple[str, str, Callable[[Sample, str], list[str]]]] = {
    "torque": ("pbs", "", torque),
    "pbs_pro": ("pbs", "", pbs_pro),
    "slurm": ("slurm", SACCT_HEADER + "\n", slurm),
}

ZONES = ("UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/New_York")


@st.composite
def samples(draw: st.DrawFn) -> list[Sample]:
    """Return jobs with numbers of their own; submissions cover a year, so also gaps and folds of
    daylight saving."""
    numbers = draw(st.lists(st.integers(1, 99_999), min_size=1, max_size=12, unique=True))
    small = st.integers(0, 5000)
    return [
        Sample(
            number,
            BASE + draw(st.integers(0, 366 * 86_400)),
            draw(small),
            draw(small),
            draw(st.integers(1, 3)),
            draw(st.integers(1, 8)),
            draw(st.integers(1, 200_000)),
            draw(st.booleans()),
            draw(st.sampled_from(["ann", "bob", "zoë"])),
            draw(st.sampled_from(["long", "short"])),
        )
        for number in numbers
    ]


def peak(jobs: list[Sample]) -> int:
    """Return the most processors in use: looked at on every start (naive)."""
    instants = [job.start for job in jobs if job.run]
    in_use = [
        sum(j.hosts * j.cores for j in jobs if j.run and j.start <= at < j.end) for at in instants
    ]
    return max([*in_use, *(job.hosts * job.cores for job in jobs)])


def expected(jobs: list[Sample]) -> list[tuple[object, ...]]:
    """Return the rows that the jobs should become (naive)."""
    ordered = sorted(jobs, key=lambda job: (job.submit, job.number))
    first = ordered[0].submit
    return [
        (
            place,
            job.submit - first,
            job.wait,
            job.run,
            job.hosts * job.cores,
            job.hosts * job.cores,
            job.limit,
            1 if job.is_good else 0,
            2048 // (job.hosts * job.cores),
        )
        for place, job in enumerate(ordered, 1)
    ]


def rows(done: Imported) -> list[tuple[object, ...]]:
    names = (
        "job",
        "submit",
        "wait",
        "run",
        "procs_allocated",
        "procs_requested",
        "time_requested",
        "status",
        "memory_used",
    )
    return list(zip(*(column(done, name) for name in names), strict=True))


@pytest.mark.parametrize("system", WRITERS)
@given(jobs=samples(), seed=st.integers(0, 99), zone=st.sampled_from(ZONES))
def test_jobs_come_back_as_they_were(system: str, jobs: list[Sample], seed: int, zone: str) -> None:
    form, head, write = WRITERS[system]
    texts = [line for job in sorted(jobs, key=lambda job: job.end) for line in write(job, zone)]
    if form == "pbs":  # any line in any file, in any order
        random.Random(seed).shuffle(texts)
    cut = len(texts) // 4 * 2
    parts = [head + "".join(f"{line}\n" for line in part) for part in (texts[:cut], texts[cut:])]
    with tempfile.TemporaryDirectory() as folder:
        done = imported(Path(folder), form, *parts, timezone=zone)
    assert done.document["unusable"] == []
    assert rows(done) == expected(jobs)
    assert done.log.procs == peak(jobs)
    users = dict(
        zip(
            [job.user for job in sorted(jobs, key=lambda j: (j.submit, j.number))],
            column(done, "user"),
            strict=True,
        )
    )
    assert len(set(users.values())) == len(users)
    if form == "slurm":
        asked = [job.hosts * job.cores for job in sorted(jobs, key=lambda j: (j.submit, j.number))]
        assert column(done, "memory_requested") == [2**20] * len(asked)


@pytest.mark.parametrize("system", WRITERS)
def test_the_log_is_valid_and_says_where_it_comes_from(system: str, tmp_path: Path) -> None:
    form, head, write = WRITERS[system]
    jobs = [
        Sample(n, BASE + 10 * n, n, 100 * n, 1 + n % 2, 4, 3600, n != 3, f"u{n % 3}", "q")
        for n in range(1, 20)
    ]
    text = head + "".join(f"{line}\n" for job in jobs for line in write(job, "UTC"))
    done = imported(tmp_path, form, text, notes=("by hand",))
    out = BytesIO()
    write_log(out, Header(lines=tuple(done.log.lines)), done.log.columns)
    path = tmp_path / "log.swf"
    path.write_bytes(out.getvalue())
    log = read_log(str(path))
    assert [finding for finding in findings(log) if finding.severity != "note"] == []
    header = log.header
    assert (header.version, header.max_jobs, header.unix_start_time) == ("2.2", 19, BASE + 10)
    assert (header.time_zone_string, header.queues, header.max_nodes) == ("UTC", {1: "q"}, 2)
    assert machine_procs(header) == peak(jobs)
    assert "by hand" in header.notes
    assert {"user 1 is u1", "user 2 is u2", "user 3 is u0", "group 1 is staff"} <= set(header.notes)


def test_a_job_that_starts_when_another_ends_takes_its_processors(tmp_path: Path) -> None:
    jobs = [Sample(n, BASE, 10 * n, 10, 1, 4, 60, True, "u", "q") for n in (1, 2, 3)]
    done = imported(tmp_path, "pbs", "".join(pbs_pro(job)[0] + "\n" for job in jobs))
    assert done.log.procs == 4
