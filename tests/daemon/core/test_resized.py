"""Jobs on fewer processors than they asked for: what they use of their walltime, and what is said
before a policy goes."""

from __future__ import annotations

from qbatch.daemon.core.records import exec_texts, full_record
from qbatch.daemon.export import exportable_of
from qbatch.wire import requests
from qbatch.wire.records import HostRecord
from tests.daemon.core.driver import ROOT, Bench
from tests.daemon.core.test_quantum import config
from tests.daemon.what_if.driver import group_of


def malleable(memory: str = "0") -> Bench:
    text = config(policy="equispatial:quantum=500,memory=512MB", memory=memory)
    return Bench(text.replace("cpus = 4", "cpus = 4\nsingle_host = true"))


def test_the_walltime_that_is_used_counts_as_on_the_processors_asked_for() -> None:
    """An emulated job shows it as one that really runs does, while it runs and when it has
    ended."""
    bench = malleable()
    jobs = [
        bench.submit("sleep 100\n", resources={"ncpus": "4", "walltime": "150"}) for _ in range(2)
    ]
    bench.wait(60)
    job = bench.core.find(bench.core.key_of(jobs[0]))
    assert job is not None
    bench.core.now = bench.now
    used = full_record(bench.core, job).used
    assert (used["walltime"], used["cput"], used["ncpus"]) == ("00:00:30", "00:02:00", "2")
    bench.wait(200)
    record = bench.ended[jobs[0]]
    assert (record.ended, record.used["walltime"]) == (200_000_000, "00:01:40")


def test_a_resized_job_is_shown_with_the_memory_that_it_holds() -> None:
    bench = malleable("4GB")
    jobs = [
        bench.submit("sleep 100\n", resources={"ncpus": "4", "mem": "1gb", "walltime": "150"})
        for _ in range(2)
    ]
    bench.wait(1)
    found = [bench.core.find(bench.core.key_of(job)) for job in jobs]
    shown = [exec_texts(bench.core, job) for job in found if job]
    assert shown == [("n1/0*2", "(n1:ncpus=2:mem=1gb)"), ("n1/1*2", "(n1:ncpus=2:mem=1gb)")]


def test_a_trial_run_is_shown_with_the_memory_that_its_quantum_has() -> None:
    bench = malleable("2GB")
    bench.submit("sleep 400\n", resources={"ncpus": "3", "mem": "1gb", "walltime": "900"})
    bench.wait(1)
    trial = bench.submit(
        "sleep 50\n", resources={"ncpus": "1", "mem": "2gb", "walltime": "900"}, used_memory=0
    )
    bench.wait(1)
    found = bench.core.find(bench.core.key_of(trial))
    assert found is not None
    assert exec_texts(bench.core, found)[1] == "(n1:ncpus=1:mem=512mb)"


def test_jobs_that_keep_fewer_processors_are_counted_without_the_trial_runs() -> None:
    bench = malleable("2GB")
    for memory, procs in (("1gb", "3"), ("0", "3")):
        bench.submit("sleep 400\n", resources={"ncpus": procs, "mem": memory, "walltime": "900"})
    bench.wait(1)
    fields = {"resources": {"ncpus": "1", "mem": "2gb", "walltime": "900"}, "used_memory": 0}
    trials = [bench.submit("sleep 50\n", **fields) for _ in range(2)]
    bench.wait(1)
    assert [bench.state(trial) for trial in trials] == ["R", "R"]
    said = bench.do(ROOT, requests.PolicySet(policy="easy", is_dry_run=True)).text  # type: ignore[attr-defined]
    assert (
        "2 quanta end and their jobs wait again, 2 jobs keep the fewer processors that they have "
        "now"
    ) in said


def test_a_lost_attempt_is_exported_on_the_processors_that_it_had() -> None:
    """4 of 4 for 10 s, 2 next to another job for 20 s, then run again: the bars hold the same work
    as the execution intervals."""
    bench = malleable()
    fields = {"resources": {"ncpus": "4", "walltime": "150"}}
    first = bench.submit("sleep 100\n", **fields)
    bench.wait(10)
    bench.submit("sleep 100\n", **fields)
    bench.wait(20)
    bench.do(ROOT, requests.Rerun(jobs=(first,)))
    bench.wait(400)
    host = HostRecord(name="n1", pool="main", state="free", cpus=4)
    exported, *_ = exportable_of([bench.ended[first]], [host], "here")
    [rows] = exported.result.schedules
    assert rows.pieces is not None
    pieces = [(begin, end, procs) for _, begin, end, procs, *_ in rows.pieces.tolist()]
    assert [(end - begin, procs) for begin, end, procs in pieces[:2]] == [
        (10_000_000, 4),
        (20_000_000, 2),
    ]
    assert sorted((bar.begin, bar.end, bar.procs) for bar in exported.bars["live"]) == sorted(
        pieces
    )


def test_the_table_of_shadows_counts_the_processors_that_a_resized_job_has() -> None:
    """Two jobs of four processors share the four of a host: it is busy, and not twice over; each
    runs for 100 s in 200."""
    bench = malleable()
    group = group_of(bench, ["easy"])
    for _ in range(2):
        bench.submit("sleep 100\n", resources={"ncpus": "4", "walltime": "150"})
    bench.wait(150)
    group.follow(bench.journal, bench.now)
    assert group.report().policies[0].utilisation == 1.0
    place = len(bench.journal)
    late = group_of(bench, ["easy"])  # begins while they are resized
    bench.wait(50)
    for each, entries in ((group, bench.journal[place:]), (late, bench.journal[place:])):
        each.follow(entries, bench.now + 1)
        real = each.report().policies[0]
        assert real.utilisation is not None
        assert abs(real.utilisation - 1.0) < 1e-6
    assert group.report().policies[0].bounded_slowdown_mean == 2.0
