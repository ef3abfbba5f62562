"""The live history as a result: in which host each job lived, where each lived inside one; one
number for each job."""

from __future__ import annotations

import io

import msgspec
import pytest

from qbatch.daemon.export import exportable_of
from qbatch.results.job_rows import ABSENT
from qbatch.wire.records import HostRecord, JobRecord

HOSTS = [
    HostRecord(name=name, pool="p", state="free", cpus=cpus) for name, cpus in (("a", 4), ("b", 8))
]


def ran(number: int, where: str, procs: int) -> JobRecord:
    return JobRecord(
        id=f"{number}.s",
        name="n",
        user="u",
        queue="q",
        state="F",
        resources={"ncpus": str(procs), "walltime": "60"},
        submitted=number,
        eligible=number,
        started=10,
        ended=50,
        exec_host=where,
    )


@pytest.mark.parametrize(
    ("where", "hosts", "cpus"),
    [("b/0*4", [0, 1], (4, 8)), ("b/0*2+b/0*2", [0, 1], (4, 8)), ("a/0*2+b/0*2", [0, ABSENT], ())],
)
def test_jobs_inside_one_host_name_it(where: str, hosts: list[int], cpus: tuple[int, ...]) -> None:
    result = exportable_of([ran(1, "a/0*2", 2), ran(2, where, 4)], HOSTS, "s")[0].result
    assert (result.schedules[0].host.tolist(), result.host_cpus) == (hosts, cpus)
    assert result.host_names == (("a", "b") if cpus else ())


def test_one_host_is_not_named() -> None:
    result = exportable_of([ran(1, "a/0*2", 2)], HOSTS[:1], "s")[0].result
    assert (result.schedules[0].host, result.host_cpus) == (None, ())


def test_every_form_of_one_instant_has_the_same_numbers_and_times() -> None:
    waits = msgspec.structs.replace(
        ran(1, "", 4),
        state="Q",
        submitted=1_000_000,
        eligible=1_000_000,
        started=None,
        ended=None,
        user="w",
        queue="r",
    )
    late = msgspec.structs.replace(
        ran(2, "a/0*2", 2),
        submitted=2_000_000,
        eligible=2_000_000,
        started=2_000_000,
        ended=5_000_000,
    )
    lived = exportable_of([late, waits], HOSTS, "s", 9_000_000)
    out = io.BytesIO()
    assert lived.exported.write_swf is not None
    lived.exported.write_swf(out)
    lines = [
        line.split() for line in out.getvalue().decode().splitlines() if not line.startswith(";")
    ]
    rows = lived.exported.result.schedules[0]
    fields = (
        rows.workload.number,
        rows.workload.submit // 1_000_000,
        rows.workload.user,
        rows.workload.queue,
    )
    assert (
        [int(column[0]) for column in fields]
        == [int(lines[1][field]) for field in (0, 1, 11, 14)]
        == [2, 1, 2, 2]
    )
    assert lived.exported.result.queue_names == {1: "r", 2: "q"}
