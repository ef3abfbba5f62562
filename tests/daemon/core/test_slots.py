"""Where the chunks of a job are, and the numbers that exec_host gives them."""

from __future__ import annotations

import pytest

from qbatch.daemon.core import slots, state_snapshot
from qbatch.daemon.core.job import Slot
from qbatch.daemon.core.records import full_record, host_records
from qbatch.policies.registry import load_policy
from qbatch.wire.errors import Refusal
from qbatch.wire.records import JobRecord
from qbatch.wire.requests import Alter, Changes, Delete, Move
from qbatch.wire.resources import parse_resources
from tests.daemon.core.driver import ALICE, EMULATED, ROOT, Bench


def submit(bench: Bench, text: str, script: str = "sleep 100\n", **more: object) -> str:
    return bench.submit(script, resources=parse_resources(text), **more)


def record(bench: Bench, job: str) -> JobRecord:
    found = bench.core.find(bench.core.key_of(job))
    assert found is not None
    return full_record(bench.core, found)


def lines(bench: Bench, job: str) -> list[str]:
    """The node file: a line a slot."""
    found = bench.core.find(bench.core.key_of(job))
    assert found is not None
    hosts = bench.core.pool_of(found).machine.hosts
    return [
        hosts[slot.host].name
        for slot in found.present.slots
        for _ in range(slot.lines * slot.count)
    ]


@pytest.mark.parametrize(
    ("asked", "exec_host", "exec_vnode", "node_file"),
    [
        ("nodes=2:ppn=2", "n1/0*2+n2/0*2", "(n1:ncpus=2)+(n2:ncpus=2)", "n1 n1 n2 n2"),
        ("nodes=2", "n1/0+n2/0", "(n1:ncpus=1)+(n2:ncpus=1)", "n1 n2"),
        ("select=2:ncpus=2", "n1/0*2+n1/1*2", "(n1:ncpus=2)+(n1:ncpus=2)", "n1 n1"),
        ("select=2:ncpus=1,place=scatter:excl", "n1/0+n2/0", "(n1:ncpus=1)+(n2:ncpus=1)", "n1 n2"),
        (
            "select=2:ncpus=1,place=vscatter:exclhost",
            "n1/0+n2/0",
            "(n1:ncpus=1)+(n2:ncpus=1)",
            "n1 n2",
        ),
        ("nodes=2:ppn=1#excl", "n1/0+n2/0", "(n1:ncpus=1)+(n2:ncpus=1)", "n1 n2"),
        ("select=2:ncpus=3,place=excl", "n1/0*3+n2/0*3", "(n1:ncpus=3)+(n2:ncpus=3)", "n1 n2"),
        ("nodes=n2+n4:ppn=2", "n2/0+n4/0*2", "(n2:ncpus=1)+(n4:ncpus=2)", "n2 n4 n4"),
        (
            "select=1:ncpus=4+1:ncpus=2:host=n1",
            "n2/0*4+n1/0*2",
            "(n2:ncpus=4)+(n1:ncpus=2)",
            "n2 n1",
        ),
        ("select=1:vnode=n3:mpiprocs=2", "n3/0", "(n3:ncpus=1)", "n3 n3"),
        ("ncpus=2,host=n3", "n3/0*2", "(n3:ncpus=2)", "n3"),
        (
            "select=2:ncpus=2,place=group=host",
            "n1/0*2+n1/1*2",
            "(n1:ncpus=2)+(n1:ncpus=2)",
            "n1 n1",
        ),
        (
            "select=1:host=n2:ncpus=2+1:ncpus=2,place=pack",
            "n2/0*2+n2/1*2",
            "(n2:ncpus=2)+(n2:ncpus=2)",
            "n2 n2",
        ),
    ],
)
def test_exec_host_exec_vnode_and_the_node_file_are_the_hosts_that_are_taken(
    asked: str, exec_host: str, exec_vnode: str, node_file: str
) -> None:
    bench = Bench()
    job = submit(bench, asked)
    bench.wait(1)
    shown = record(bench, job)
    assert (shown.exec_host, shown.exec_vnode, lines(bench, job)) == (
        exec_host,
        exec_vnode,
        node_file.split(),
    )
    taken = {host.name for host in host_records(bench.core, bench.now) if host.cpus_used}
    assert taken == set(node_file.split())
    states = {host.state for host in host_records(bench.core, bench.now) if host.cpus_used}
    assert ("job-exclusive" in states) == ("excl" in asked)
    bench.check()


@pytest.mark.parametrize(
    ("asked", "code", "why"),
    [
        ("nodes=5", "never-fits", "needs 5 hosts for scattered chunks; there are 4"),
        ("nodes=1:ppn=5", "never-fits", "needs 5 processors on one host"),
        ("select=1:host=n9", "never-fits", "has no host n9"),
        ("nodes=n1+n9", "never-fits", "has no host n9"),
        ("nodes=n1+n1", "never-fits", "a host for each scattered chunk"),
        ("select=1:host=n2:ncpus=5", "never-fits", "needs 5 processors on host n2, which has 4"),
        ("select=host=n1+host=n2,place=pack", "never-fits", "different hosts"),
        ("select=2:ncpus=3,place=group=host", "never-fits", "needs 6 processors on one host"),
        ("select=2,place=free:group=rack", "unsupported", "group=rack cannot be honoured"),
        ("select=2,place=scatter:group=host", "bad-value", "on one host and on different ones"),
        ("select=1:fast=1", "unknown-resource", "Unknown resource: fast"),
    ],
)
def test_what_no_hosts_can_give_is_refused_at_once(asked: str, code: str, why: str) -> None:
    with pytest.raises(Refusal, match=why) as refused:
        submit(Bench(), asked)
    assert refused.value.code == code


POOLS = """
executor = "emulated"

[[pool]]
name = "p"
hosts = "n[1-2]"
cpus = 4
PLACING = true

[[queue]]
name = "batch"
pool = "p"
"""


@pytest.mark.parametrize("placing", ["spans", "single_host"])
@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("nodes=2:ppn=2", "different hosts .* write ncpus=4"),
        ("select=2:ncpus=1,place=vscatter", "different hosts"),
        ("select=1:ncpus=2,place=excl", "share hosts"),
        ("nodes=1:ppn=2#excl", "share hosts"),
    ],
)
def test_a_pool_without_chunks_refuses_hosts_that_it_cannot_give(
    placing: str, asked: str, why: str
) -> None:
    bench = Bench(POOLS.replace("PLACING", placing))
    with pytest.raises(Refusal, match=why) as refused:
        submit(bench, asked)
    assert refused.value.code == "unsupported"
    for allowed in ("nodes=1:ppn=2", "select=2:ncpus=1", "ncpus=4"):
        assert submit(bench, allowed)


def test_numbers_are_the_lowest_that_are_free_and_outlive_a_restart() -> None:
    bench = Bench()
    jobs = [submit(bench, "select=1:ncpus=1:host=n1") for _ in range(3)]
    bench.wait(1)
    assert [record(bench, job).exec_host for job in jobs] == ["n1/0", "n1/1", "n1/2"]
    bench.do(ROOT, Delete(jobs=(jobs[1],), is_forced=True))
    wide = submit(bench, "select=1:ncpus=2:host=n1")
    bench.wait(1)
    assert (record(bench, wide).exec_host, record(bench, wide).exec_slots) == ("n1/1*2", "n1/1,3")
    bench.check()
    again = state_snapshot.load(state_snapshot.dump(bench.core), bench.settings, load_policy)
    assert [pool.numbers for pool in again.pools] == [{0: (0b111, 0b1111)}]
    bench.wait(200)
    assert bench.ended[wide].exec_host == "n1/1*2"
    assert [pool.numbers for pool in bench.core.pools] == [{0: (0, 0)}]


def test_a_job_waits_for_the_host_that_it_asks_for_while_others_pass() -> None:
    bench = Bench()
    first = submit(bench, "select=1:ncpus=4:host=n1", "sleep 50\n")
    second = submit(bench, "select=1:ncpus=4:host=n1", "sleep 10\n")
    third = submit(bench, "select=1:ncpus=4", "sleep 10\n")
    bench.wait(20)
    assert [bench.state(job) for job in (first, second, third)] == ["R", "Q", "F"]
    assert bench.ended[third].exec_host == "n2/0*4"
    bench.wait(60)
    assert (bench.ended[second].started, bench.ended[second].exec_host) == (50_000_000, "n1/0*4")


def test_gpus_are_refused() -> None:
    bench = Bench()
    asked = {"select": "1:ncpus=1:ngpus=2"}
    with pytest.raises(Refusal, match="Unknown resource: ngpus"):
        bench.submit("true\n", resources=asked)
    job = submit(bench, "ncpus=1", hold="u")
    outcomes = bench.do(ALICE, Alter(jobs=(job,), changes=Changes(resources={"gpus": "1"})))
    assert [each.error.code for each in outcomes.outcomes if each.error] == ["unknown-resource"]  # type: ignore[attr-defined]


def test_qalter_to_nodes_scatters_too() -> None:
    bench = Bench()
    job = submit(bench, "select=2:ncpus=2,place=free", hold="u")
    bench.do(ALICE, Alter(jobs=(job,), changes=Changes(resources={"nodes": "2:ppn=2"}, hold="n")))
    bench.wait(1)
    assert record(bench, job).exec_host == "n1/0*2+n2/0*2"
    assert record(bench, job).resources["place"] == "scatter"


def test_qalter_and_qmove_are_as_strict() -> None:
    bench = Bench()
    job = submit(bench, "ncpus=1", hold="u", host="here.example")
    for request, code in (
        (Alter(jobs=(job,), changes=Changes(resources={"foo": "1"})), "unknown-resource"),
        (Alter(jobs=(job,), changes=Changes(resources={"select": "1:host=n9"})), "never-fits"),
        (Move(jobs=(job,), destination="narrow@other"), "unknown-server"),
    ):
        outcomes = bench.do(ALICE, request)
        assert [each.error.code for each in outcomes.outcomes if each.error] == [code]  # type: ignore[attr-defined]
    bench.do(ALICE, Move(jobs=(job,), destination="narrow@here"))
    assert record(bench, job).queue == "narrow"


def test_the_indices_of_an_array_are_shown_as_they_were_written() -> None:
    bench = Bench()
    job = submit(bench, "ncpus=1", array="1-10:2%3", hold="u")
    assert record(bench, job).array_submitted == "1-10:2"
    assert record(bench, job).array_remaining == "1-10:2"
    bench.do(ALICE, Delete(jobs=(f"{job.partition('[')[0]}[9]",)))
    assert record(bench, job).array_submitted == "1-10:2"
    assert record(bench, job).array_remaining == "1-7:2"


def test_a_lenient_server_takes_more() -> None:
    bench = Bench(
        'custom_resources = ["foo"]\nlenient = ["select", "array", "server", "user"]\n' + EMULATED
    )
    others = {"group_list": "wheel", "extra": {"user_list": "bob"}}
    job = submit(bench, "select=1:foo=2,ncpus=2", array="3", queue="batch@other", **others)
    bench.wait(1)
    assert record(bench, job).array_submitted == "3"
    with pytest.raises(Refusal, match=r"Unknown resource Resource_List\.bar"):
        submit(bench, "bar=2")
    with pytest.raises(Refusal, match='Cannot have "place" without "select"'):
        submit(bench, "place=excl")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"array": "3"}, "illegal-option"),
        ({"queue": "batch@other"}, "unknown-server"),
        ({"extra": {"user_list": "bob"}}, "bad-user"),
        ({"group_list": "wheel"}, "bad-group"),
        ({"extra": {"stagein": "a@elsewhere:/b"}}, "bad-value"),
        ({"extra": {"stageout": "nonsense"}}, "bad-value"),
    ],
)
def test_what_openpbs_refuses_is_refused(fields: dict[str, object], code: str) -> None:
    with pytest.raises(Refusal) as refused:
        submit(Bench(), "ncpus=1", host="here.example", **fields)
    assert refused.value.code == code
    for allowed in (
        {"array": "3", "is_torque": True},
        {"queue": "batch@here"},
        {"queue": "batch@qbatch"},
        {"extra": {"user_list": "alice@x"}},
        {"group_list": "users@x"},
        {"extra": {"stagein": "a@here:/b,c@localhost:/d"}},
    ):
        assert submit(Bench(), "ncpus=1", host="here.example", **allowed)


def test_dependencies_are_shown_with_their_server_by_both_sides_and_the_queue_in_the_variables() -> (
    None
):
    bench = Bench()
    parent = submit(bench, "ncpus=1")
    child = submit(
        bench, "ncpus=1", depend=f"afterok:{parent.partition('.')[0]}@qbatch,afterany:{parent}"
    )
    assert record(bench, child).depend == "afterok:1.qbatch@qbatch,afterany:1.qbatch@qbatch"
    assert record(bench, parent).depend == "beforeok:2.qbatch@qbatch,beforeany:2.qbatch@qbatch"
    assert record(bench, parent).variables["PBS_O_QUEUE"] == "batch"


def test_equal_chunks_on_a_host_are_one_slot_as_far_as_their_numbers_follow_each_other() -> None:
    bench = Bench(EMULATED.replace("cpus = 4", "cpus = 16"))
    first, between, after = (
        submit(bench, f"select={count}:ncpus=1:host=n1") for count in (2, 1, 3)
    )
    bench.wait(1)
    for job in (first, after):
        bench.do(ROOT, Delete(jobs=(job,)))
    wide = submit(bench, "select=4:ncpus=3:host=n1")
    bench.wait(1)
    found = bench.core.find(bench.core.key_of(wide))
    assert found is not None
    assert found.present.slots == (
        Slot(0, 3, 0, 1, 0, ((0, 1), (3, 6)), 2),
        Slot(0, 3, 0, 1, 3, ((7, 12),), 2),
    )
    shown = record(bench, wide)
    assert shown.exec_host == "n1/0*3+n1/1*3+n1/3*3+n1/4*3"
    assert shown.exec_vnode == "+".join(["(n1:ncpus=3)"] * 4)
    assert shown.exec_slots == "n1/0-1,3+n1/4-6+n1/7-9+n1/10-12"
    assert record(bench, between).exec_host == "n1/2"
    bench.check()
    again = state_snapshot.load(state_snapshot.dump(bench.core), bench.settings, load_policy)
    assert again.pools[0].numbers == bench.core.pools[0].numbers == {0: (0b11111, 0b1111111111111)}
    bench.do(ROOT, Delete(jobs=(wide,)))
    assert bench.core.pools[0].numbers == {0: (0b100, 0b100)}


def test_ranges_of_free_numbers() -> None:
    assert slots._split(((2, 2), (4, 9)), 3) == (((2, 2), (4, 5)), ((6, 9),))
    assert slots._split(((2, 2), (4, 9)), 1) == (((2, 2),), ((4, 9),))
    assert slots._split(((2, 2), (4, 9)), 7) == (((2, 2), (4, 9)), ())
    assert list(slots._free_ranges(0b1011, 3)) == [(2, 2), (4, 5)]
    assert list(slots._free_ranges(0, 100_000)) == [(0, 99_999)]
    assert list(slots._free_ranges((1 << 50) - 1, 1)) == [(50, 50)]
    assert slots._bits(((2, 2), (4, 5))) == 0b110100
