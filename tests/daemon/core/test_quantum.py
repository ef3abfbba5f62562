"""Immediate service in a live core: quanta, preempted jobs, what users do to them meanwhile, and
the same from the journal."""

from __future__ import annotations

import random

import pytest

from qbatch.daemon.core import state_snapshot
from qbatch.daemon.core.records import brief_record
from qbatch.daemon.core.state import Account, Launch, SendSignal, Stop
from qbatch.daemon.executors.attempt import Ended
from qbatch.daemon.export import exportable_of
from qbatch.wire import requests
from qbatch.wire.records import HostRecord
from tests.daemon.core.driver import ALICE, ROOT, Bench
from tests.daemon.what_if.driver import group_of

POLICY = "immediate:inner=fcfs-backfill,quantum=60,memory=1GB,protect=600"


def config(
    executor: str = "emulated", policy: str = POLICY, memory: str = "0", hosts: str = "n1"
) -> str:
    return f"""
executor = "{executor}"
[[pool]]
hosts = "{hosts}"
cpus = 4
memory = "{memory}"
policy = "{policy}"
[[queue]]
name = "batch"
default_walltime = "1:00:00"
"""


def with_trial(bench: Bench, script: str = "sleep 20\n", **fields: object) -> tuple[str, str]:
    """A job on all four processors, and at 600 s one that gets a quantum."""
    preempted = bench.submit("sleep 1000\n", resources={"ncpus": "4"})
    bench.wait(600)
    trial = bench.submit(script, resources={"ncpus": "3", "walltime": "500"}, **fields)
    bench.wait(1)
    return preempted, trial


def states(bench: Bench, *jobs: str) -> str:
    bench.check()
    return "".join(bench.state(job) for job in jobs)


def comment_of(bench: Bench, job: str) -> str:
    return brief_record(bench.core, bench.core.live(job)).comment


def test_a_preempted_job_is_suspended_for_the_trial_run_and_goes_on() -> None:
    bench = Bench(config())
    preempted, trial = with_trial(bench)
    assert states(bench, preempted, trial) == "SR"
    assert [comment_of(bench, job) for job in (preempted, trial)] == [
        "Job suspended by immediate:inner=fcfs-backfill",
        "Job runs for a quantum",
    ]
    bench.wait(20)
    assert states(bench, preempted, trial) == "RF"
    assert comment_of(bench, preempted) == ""
    bench.wait(500)
    assert bench.ended[preempted].exit_status == 0
    assert bench.ended[preempted].ended == 1_020_000_000
    assert bench.ended[trial].exit_status == 0
    assert bench.ended[trial].run_count == 1


def test_a_trial_run_that_does_not_end_waits_again_and_that_is_no_failure() -> None:
    bench = Bench(config())
    preempted, trial = with_trial(bench, "sleep 100\n")
    bench.wait(60)
    assert states(bench, preempted, trial) == "RQ"
    assert [e.kind for e in bench.outbox if isinstance(e, Account) and e.job == trial] == [
        "Q",
        "S",
        "R",
    ]
    bench.wait(1000)
    assert states(bench, preempted, trial) == "FF"
    record = bench.ended[trial]
    assert (record.exit_status, record.run_count) == (0, 2)
    assert (record.started, record.ended) == (1_060_000_000, 1_160_000_000)
    assert record.trials == ((600_000_000, 660_000_000, 3, "n1/1*3"),)
    assert record.first_started == 600_000_000


def test_an_emulated_job_that_asks_for_more_memory_than_a_quantum_has_is_returned_at_once() -> None:
    bench = Bench(config(memory="8GB"))
    preempted = bench.submit("sleep 1000\n", resources={"ncpus": "4", "mem": "2gb"})
    bench.wait(700)
    trial = bench.submit("sleep 0\n", resources={"ncpus": "3", "mem": "2gb"})
    bench.wait(0)
    assert states(bench, preempted, trial) == "RQ"
    # The clock of the preempted job began anew.
    other = bench.submit("sleep 5\n", resources={"ncpus": "3", "mem": "1gb"})
    bench.wait(1)
    assert states(bench, preempted, trial, other) == "RQQ"
    bench.wait(400)
    assert states(bench, preempted, trial, other) == "FFF"
    assert bench.ended[trial].trials == ((700_000_000, 700_000_000, 3, "n1/1*3"),)
    hosts = [HostRecord(name="n1", pool="pool", state="free", cpus=4)]
    exported, *_, left_out = exportable_of(
        [bench.ended[job] for job in (preempted, trial, other)], hosts, "here"
    )
    [rows] = exported.result.schedules
    assert left_out == 0
    assert rows.pieces is not None
    # It took no time: what it ran on trial and what counts are two pieces of no length.
    mine = rows.pieces[rows.pieces[:, 0] == 1]
    assert mine[:, 3:].tolist() == [[3, 0, 0], [3, 0, 1]]
    assert (mine[:, 1] == mine[:, 2]).all()


@pytest.mark.parametrize("which", ["preempted", "trial"])
@pytest.mark.parametrize("executor", ["emulated", "process"])
def test_either_may_be_deleted_meanwhile(which: str, executor: str) -> None:
    bench = Bench(config(executor))
    preempted, trial = with_trial(bench, "sleep 400\n")
    gone, stays = (preempted, trial) if which == "preempted" else (trial, preempted)
    bench.do(ALICE, requests.Delete(jobs=(gone,)))
    bench.wait(1)
    if executor == "process":
        assert bench.state(gone) == "E"
        bench.check()
        bench.wait(100)
        bench.report(Ended(bench.core.find(bench.core.key_of(gone)).file_key, 271, 0))  # type: ignore[union-attr]
        bench.wait(1)
    assert states(bench, gone) == "F"
    bench.wait(100)
    assert states(bench, stays) in ("R", "Q")


def test_a_job_that_a_user_suspended_as_well_goes_on_only_when_both_let_it() -> None:
    bench = Bench(config())
    preempted, trial = with_trial(bench)
    bench.do(ALICE, requests.Signal(jobs=(preempted,), signal="resume"))
    assert states(bench, preempted, trial) == "SR"
    bench.do(ALICE, requests.Signal(jobs=(preempted,), signal="suspend"))
    bench.wait(30)
    assert states(bench, preempted, trial) == "SF"
    bench.do(ALICE, requests.Signal(jobs=(preempted,), signal="resume"))
    assert states(bench, preempted) == "R"
    bench.wait(1000)
    assert states(bench, preempted) == "F"


def test_the_signal_cont_wakes_no_job_that_the_policy_has_suspended() -> None:
    bench = Bench(config("process"))
    preempted, trial = with_trial(bench)
    bench.outbox.clear()
    bench.do(ALICE, requests.Signal(jobs=(preempted,), signal="CONT"))
    assert states(bench, preempted, trial) == "SR"
    assert not any(isinstance(effect, SendSignal) for effect in bench.outbox)
    bench.report(Ended(bench.core.find(bench.core.key_of(trial)).file_key, 0, 0))  # type: ignore[union-attr]
    bench.wait(1)
    bench.do(ALICE, requests.Signal(jobs=(preempted,), signal="suspend"))
    assert states(bench, preempted) == "S"
    bench.do(ALICE, requests.Signal(jobs=(preempted,), signal="SIGCONT"))
    assert states(bench, preempted) == "R"


@pytest.mark.parametrize("executor", ["emulated", "process"])
def test_a_trial_run_that_is_held_meanwhile_is_held_after_its_quantum(executor: str) -> None:
    bench = Bench(config(executor))
    _, trial = with_trial(bench, "sleep 100\n")
    bench.do(ALICE, requests.Hold(jobs=(trial,)))
    bench.wait(60)
    assert states(bench, trial) == "H"
    bench.do(ALICE, requests.Release(jobs=(trial,)))
    assert states(bench, trial) == "Q"


def test_a_job_on_trial_waits_after_its_quantum_for_a_queue_that_was_stopped_meanwhile() -> None:
    bench = Bench(config())
    preempted, trial = with_trial(bench, "sleep 100\n")
    bench.do(ROOT, requests.QueueControl(queues=("batch",), started=False))
    bench.wait(1000)
    assert states(bench, preempted, trial) == "FQ"
    bench.do(ROOT, requests.QueueControl(queues=("batch",), started=True))
    bench.wait(100)
    assert states(bench, trial) == "F"


@pytest.mark.parametrize("request_of", [requests.Rerun, requests.Delete, requests.Hold])
def test_a_trial_run_that_leaves_is_not_started_when_its_quantum_ends(
    request_of: type[requests.Request],
) -> None:
    """The inner policy starts it in the very pass that ends its trial; what was asked for meanwhile
    comes before."""
    bench = Bench(config("process"))
    preempted, trial = with_trial(bench, "sleep 400\n")
    first = bench.core.find(bench.core.key_of(trial)).file_key  # type: ignore[union-attr]
    bench.do(ALICE, request_of(jobs=(trial,)))  # type: ignore[call-arg]
    bench.report(Ended(bench.core.find(bench.core.key_of(preempted)).file_key, 0, 0))  # type: ignore[union-attr]
    bench.wait(100)
    launched = [
        effect.attempt
        for effect in bench.outbox
        if isinstance(effect, Launch) and bench.core.id_of(effect.key) == trial
    ]
    assert launched == [1]
    assert (
        states(bench, preempted, trial)
        == {requests.Rerun: "FR", requests.Delete: "FE", requests.Hold: "FH"}[request_of]
    )
    restored = bench.replayed([], state_snapshot.dump(bench.core))
    assert state_snapshot.dump(restored) == state_snapshot.dump(bench.core)
    bench.report(Ended(first, 271, 0))
    bench.wait(1)
    assert (
        states(bench, trial)
        == {requests.Rerun: "R", requests.Delete: "F", requests.Hold: "H"}[request_of]
    )


def test_what_is_being_ended_is_not_stopped_by_a_trial_run() -> None:
    bench = Bench(config("process"))
    ending = bench.submit("sleep 1000\n", resources={"ncpus": "4"})
    bench.wait(600)
    bench.do(ALICE, requests.Delete(jobs=(ending,)))
    trial = bench.submit("sleep 20\n", resources={"ncpus": "3"})
    bench.wait(1)
    assert states(bench, ending, trial) == "ER"
    assert not any(isinstance(effect, SendSignal) for effect in bench.outbox)
    bench.report(Ended(bench.core.find(bench.core.key_of(ending)).file_key, 271, 0))  # type: ignore[union-attr]
    bench.wait(1)
    assert states(bench, ending, trial) == "FR"


def test_a_job_that_may_not_be_rerun_gets_no_quantum() -> None:
    bench = Bench(config())
    preempted, job = with_trial(bench, is_rerunnable=False)
    assert states(bench, preempted, job) == "RQ"


def test_processes_are_stopped_by_signals_and_a_returned_attempt_for_good() -> None:
    bench = Bench(config("process"))
    preempted, trial = with_trial(bench)
    first = bench.core.find(bench.core.key_of(trial)).file_key  # type: ignore[union-attr]
    assert any(isinstance(effect, SendSignal) and effect.signal == 19 for effect in bench.outbox)
    bench.outbox.clear()
    bench.wait(60)
    assert states(bench, preempted, trial) == "RQ"
    assert [effect.file_key for effect in bench.outbox if isinstance(effect, Stop)] == [first]
    assert any(isinstance(effect, SendSignal) and effect.signal == 18 for effect in bench.outbox)
    # The end of the attempt that was stopped changes nothing.
    bench.report(Ended(first, 271, 0))
    assert states(bench, trial) == "Q"
    bench.report(Ended(bench.core.find(bench.core.key_of(preempted)).file_key, 0, 0))  # type: ignore[union-attr]
    bench.wait(1)
    assert states(bench, preempted, trial) == "FR"
    assert [effect.attempt for effect in bench.outbox if isinstance(effect, Launch)] == [2]


@pytest.mark.parametrize(
    "policy", [POLICY.replace("600", "20"), POLICY.partition(",")[0].replace("immediate", "soon")]
)
def test_from_journal_and_snapshot_the_same_is_done_again(policy: str) -> None:
    for seed in range(6):
        rng = random.Random(seed)
        bench = Bench(
            config(
                policy=policy, memory=rng.choice(("0", "8GB")), hosts=rng.choice(("n1", "n[1-2]"))
            )
        )
        snapshot, since = b"", 0
        jobs: list[str] = []
        for step in range(60):
            if rng.random() < 0.7:
                asked = {
                    "ncpus": str(rng.randint(1, 4)),
                    "mem": rng.choice(("0", "1gb", "3gb")),
                    "walltime": "300",
                }
                jobs.append(
                    bench.submit(
                        f"sleep {rng.choice((0, 5, 30, 70, 200))}\n# {step}\n", resources=asked
                    )
                )
            elif rng.random() < 0.3 and jobs and bench.state(name := rng.choice(jobs)) not in "F":
                bench.do(ROOT, requests.Delete(jobs=(name,)))
            elif rng.random() < 0.3:
                bench.do(
                    ROOT,
                    requests.Rerun(jobs=tuple(job for job in jobs if bench.state(job) in "RS")[:1]),
                )
            bench.wait(rng.choice((0, 1, 10, 30, 60)))
            bench.check()
            if step == 30:
                snapshot, since = state_snapshot.dump(bench.core), len(bench.journal)
        now = state_snapshot.dump(bench.core)
        assert state_snapshot.dump(bench.replayed(bench.journal)) == now, seed
        assert state_snapshot.dump(bench.replayed(bench.journal[since:], snapshot)) == now, seed
        bench.wait(100_000)
        assert {bench.state(job) for job in jobs} == {"F"}, seed
        bench.check()


def test_the_table_of_shadows_counts_a_quantum_for_nothing_and_a_suspension_as_waiting() -> None:
    """The preempted job waits 60 s in the middle, the trial run 360 s, one quantum among them, as
    in the metrics of a replay."""
    bench = Bench(config())
    group = group_of(bench, ["easy"])
    bench.submit("sleep 1000\n", resources={"ncpus": "4", "walltime": "3000"})
    bench.wait(700)
    bench.submit("sleep 300\n", resources={"ncpus": "4", "walltime": "900"})
    bench.wait(2500)
    group.follow(bench.journal, bench.now)
    real, easy = group.report().policies
    assert (real.started, real.ended, real.wait_mean_s, real.wait_max_s) == (
        2,
        2,
        (60 + 360) / 2,
        360,
    )
    assert real.bounded_slowdown_mean == (1060 / 1000 + 660 / 300) / 2
    assert (easy.started, easy.wait_mean_s, easy.wait_max_s) == (2, (0 + 300) / 2, 300)
