"""GPUs, other resources and features of hosts: what a server counts, gives and shows."""

from __future__ import annotations

import pytest

from qbatch.cli.pbs.format_attributes import host_attributes
from qbatch.daemon.attempts import attempt_of
from qbatch.daemon.core import state_snapshot
from qbatch.daemon.core.invariants import breaches
from qbatch.daemon.core.records import full_record, host_records
from qbatch.policies.registry import load_policy
from qbatch.wire.errors import Refusal
from qbatch.wire.requests import Alter, Changes, Delete
from tests.daemon.core.driver import ALICE, Bench
from tests.daemon.core.test_slots import record, submit

SITE = """
executor = "emulated"
[[pool]]
[pool.machine]
schema = 2
[[pool.machine.host]]
name = "c1"
cpus = 8
features = ["ib"]
[[pool.machine.host]]
name = "g[1-2]"
cpus = 8
memory = "64GB"
resources = { "gpu:a100" = 4, nvme = 2 }
features = ["ib", "big"]
[[queue]]
name = "batch"
default_walltime = "10:00"
"""


def visible(bench: Bench, job: str) -> str:
    found = bench.core.find(bench.core.key_of(job))
    assert found is not None
    return attempt_of(bench.core, found, {}).environment["CUDA_VISIBLE_DEVICES"]


def test_each_gpu_is_given_once_and_given_back() -> None:
    bench = Bench(SITE)
    first = submit(bench, "select=1:ncpus=1:ngpus=3")
    second = submit(bench, "select=1:ncpus=1:ngpus=1")
    third = submit(bench, "select=2:ncpus=2:ngpus=2,place=scatter")
    bench.make_pass()
    assert [bench.state(job) for job in (first, second, third)] == ["R", "R", "Q"]
    assert [visible(bench, job) for job in (first, second)] == ["0,1,2", "3"]
    assert record(bench, first).exec_vnode == "(g1:ncpus=1:ngpus=3)"
    assert record(bench, third).resources["ngpus"] == "4"
    bench.do(ALICE, Delete(jobs=(first,)))
    bench.wait(0)
    assert bench.state(third) == "R"
    assert record(bench, third).exec_vnode == "(g1:ncpus=2:ngpus=2)+(g2:ncpus=2:ngpus=2)"
    assert visible(bench, third) == "0,1"
    assert breaches(bench.core) == []


def test_a_job_without_gpus_sees_none() -> None:
    bench = Bench(SITE)
    job = submit(bench, "ncpus=1")
    bench.make_pass()
    assert visible(bench, job) == ""


def test_hosts_show_what_they_have_and_what_jobs_have() -> None:
    bench = Bench(SITE)
    submit(bench, "select=1:ncpus=1:ngpus=3:nvme=1")
    bench.make_pass()
    _, host, _ = host_records(bench.core, bench.now)
    assert host.resources == {"gpu": 4, "gpu:a100": 4, "nvme": 2}
    assert host.resources_used == {"gpu": 3, "gpu:a100": 0, "nvme": 1}
    shown = {
        (each.name, each.resource): each.value
        for each in host_attributes(host)
        if each.name.startswith("resources")
    }
    assert shown["resources_available", "ngpus"] == "4"
    assert shown["resources_available", "accelerator_model"] == "a100"
    assert shown["resources_available", "big"] == "True"
    assert shown["resources_assigned", "ngpus"] == "3"
    assert shown["resources_assigned", "nvme"] == "1"


@pytest.mark.parametrize(
    ("asked", "host"),
    [
        ("ncpus=1", "c1"),
        ("ngpus=1", "g1"),
        ("select=1:ncpus=1:big=true", "g1"),
        ("select=1:ncpus=1:nvme=1", "g1"),
        ("select=1:ncpus=1:ngpus=1:accelerator_model=a100", "g1"),
        ("nodes=1:ppn=2:gpus=2", "g1"),
        ("nodes=1:ppn=2:gpus=2:a100", "g1"),
        ("nodes=1:ppn=2:big", "g1"),
        ("nodes=1:ppn=2:ib", "c1"),
    ],
)
def test_a_job_goes_to_hosts_that_have_what_it_asks_for(asked: str, host: str) -> None:
    bench = Bench(SITE)
    job = submit(bench, asked, is_torque=asked.startswith("nodes"))
    bench.make_pass()
    assert record(bench, job).exec_host.partition("/")[0] == host


@pytest.mark.parametrize(
    ("asked", "code", "text"),
    [
        ("select=1:ngpus=5", "never-fits", "needs 5 gpu on one host; the most is 4"),
        ("select=1:ngpus=1:accelerator_model=v100", "never-fits", "needs 1 gpu:v100 on one host"),
        ("select=3:ngpus=2,place=scatter", "never-fits", "too few of the 3 hosts"),
        ("select=1:nvme=many", "bad-value", "Resource_List.nvme: 'many' is not a whole number"),
        ("select=1:hbmem=1gb", "unknown-resource", "Unknown resource: hbmem"),
        ("ngpus=-1", "bad-value", "ngpus"),
    ],
)
def test_what_no_host_has_is_refused_with_the_reason(asked: str, code: str, text: str) -> None:
    with pytest.raises(Refusal) as found:
        submit(Bench(SITE), asked)
    assert found.value.code == code
    assert text in str(found.value)


def test_the_default_partition_has_its_limits_and_whole_hosts_on_a_server() -> None:
    partition = """[[pool.machine.partition]]
name = "main"
hosts = ["all"]
default = true
times = { default = "0:05:00", max = "1:00:00" }
share = "exclusive"
"""
    bench = Bench(SITE.replace("[[queue]]", partition + "[[queue]]"))
    first, second = (submit(bench, "ncpus=1") for _ in range(2))
    bench.make_pass()
    assert [record(bench, job).exec_host for job in (first, second)] == ["c1/0", "g1/0"]
    assert record(bench, first).resources["walltime"] == "00:05:00"
    with pytest.raises(Refusal, match="partition main: it asks for 7200 s, at most 3600 s"):
        submit(bench, "ncpus=1,walltime=2:00:00")


def test_gpus_stay_given_over_a_snapshot_and_qalter_counts_them() -> None:
    bench = Bench(SITE)
    first = submit(bench, "select=1:ncpus=1:ngpus=3")
    bench.make_pass()
    kept = state_snapshot.load(state_snapshot.dump(bench.core), bench.settings, load_policy)
    bench.core = kept
    second = submit(bench, "select=1:ncpus=1:ngpus=1")
    bench.make_pass()
    assert [visible(bench, job) for job in (first, second)] == ["0,1,2", "3"]
    held = submit(bench, "select=1:ncpus=1", hold="u")
    bench.do(ALICE, Alter(jobs=(held,), changes=Changes(resources={"select": "1:ngpus=4"})))
    found = bench.core.find(bench.core.key_of(held))
    assert found is not None
    assert full_record(bench.core, found).resources["ngpus"] == "4"
    assert breaches(bench.core) == []


LICENCES = SITE.replace(
    "[[pool.machine.host]]",
    '[[pool.machine.resource]]\nname = "matlab"\nkind = "server"\ntotal = 3\n[[pool.machine.host]]',
    1,
)


def test_licences_are_of_the_whole_server() -> None:
    bench = Bench(LICENCES)
    jobs = [
        submit(bench, "select=2:ncpus=2,place=scatter,matlab=2"),
        submit(bench, "ncpus=1,matlab=2"),
        submit(bench, "ncpus=1,matlab=1"),
        submit(bench, "ncpus=1"),
    ]
    bench.make_pass()
    assert [bench.state(job) for job in jobs] == ["R", "Q", "R", "R"]
    shown = record(bench, jobs[0])
    assert shown.exec_vnode == "(c1:ncpus=2)+(g1:ncpus=2)"
    assert shown.resources["matlab"] == "2"
    assert [host.name for host in host_records(bench.core, bench.now)] == ["c1", "g1", "g2"]
    again = Bench(LICENCES)
    again.core = state_snapshot.load(state_snapshot.dump(bench.core), bench.settings, load_policy)
    again.do(ALICE, Delete(jobs=(jobs[0],)))
    again.wait(0)
    assert again.state(jobs[1]) == "R"
    assert breaches(again.core) == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("ncpus=1,matlab=4", "needs 4 matlab of the server, which has 3"),
        ("ncpus=1,matlab=x", "is not a whole number"),
        ("select=1:ncpus=1:matlab=1", "matlab cannot be inside select"),
    ],
)
def test_licences_that_there_are_not_are_refused(asked: str, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        submit(Bench(LICENCES), asked)
