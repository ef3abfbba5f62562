"""The live history as a result: in which host each job lived, where each lived inside one."""

from __future__ import annotations

import pytest

from qbatch.daemon.export import exportable_of
from qbatch.reports.job_rows import ABSENT
from qbatch.wire.records import HostRecord, JobRecord

HOSTS = [HostRecord(name=name, pool="p", state="free", cpus=cpus) for name, cpus in (("a", 4), ("b", 8))]


def ran(number: int, where: str, procs: int) -> JobRecord:
    return JobRecord(
        id=f"{number}.s", name="n", user="u", queue="q", state="F", resources={"ncpus": str(procs), "walltime": "60"},
        submitted=number, eligible=number, started=10, ended=50, exec_host=where,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("where", "hosts", "cpus"),
    [("b/0*4", [0, 1], (4, 8)), ("b/0*2+b/0*2", [0, 1], (4, 8)), ("a/0*2+b/0*2", [0, ABSENT], ())],
)
def test_jobs_inside_one_host_name_it(where: str, hosts: list[int], cpus: tuple[int, ...]) -> None:
    result = exportable_of([ran(1, "a/0*2", 2), ran(2, where, 4)], HOSTS, "s")[0].result
    assert (result.rows[0].host.tolist(), result.host_cpus) == (hosts, cpus)
    assert result.host_names == (("a", "b") if cpus else ())


def test_one_host_is_not_named() -> None:
    result = exportable_of([ran(1, "a/0*2", 2)], HOSTS[:1], "s")[0].result
    assert (result.rows[0].host.tolist(), result.host_cpus) == ([ABSENT], ())
