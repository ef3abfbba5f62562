"""Immediate service on real processes: the preempted job is stopped and goes on, a trial run that
takes too long is run again."""

from __future__ import annotations

from pathlib import Path

from tests.daemon.harness import Daemon

CONFIG = """
executor = "process"
[[pool]]
hosts = "n1"
cpus = 2
policy = "immediate:inner=easy,quantum=2,protect=1"
[[queue]]
name = "batch"
default_walltime = "10:00"
"""


def test_a_preempted_job_is_stopped_during_the_trial_run_and_a_long_one_is_run_again(
    tmp_path: Path,
) -> None:
    daemon = Daemon(tmp_path, config=CONFIG).start()
    try:
        ticks = tmp_path / "ticks"
        preempted = daemon.submit(
            f"for n in $(seq 60); do echo $n >> {ticks}; sleep 0.1; done\n",
            resources={"ncpus": "2"},
            name="preempted",
        )
        daemon.until(preempted, "R")
        while not ticks.exists() or len(ticks.read_text().split()) < 15:
            pass
        trial = daemon.submit("echo one\n", resources={"ncpus": "2"})
        first = daemon.until(trial, "F", 30)
        assert (first.exit_status, first.run_count) == (0, 1)
        assert daemon.until(preempted, "R").state == "R"
        counted = len(ticks.read_text().split())
        while len(ticks.read_text().split()) < counted + 15:
            pass
        begun = tmp_path / "begun"
        long = daemon.submit(f"echo $$ >> {begun}; sleep 4; echo done\n", resources={"ncpus": "2"})
        daemon.until(long, "R")
        assert daemon.jobs(preempted)[preempted].state == "S"
        daemon.until(long, "Q", 30)
        ended = daemon.until(preempted, "F", 60)
        assert ended.exit_status == 0
        assert ticks.read_text().split() == [str(n) for n in range(1, 61)]
        again = daemon.until(long, "F", 60)
        assert (again.exit_status, again.run_count) == (0, 2)
        assert len(begun.read_text().split()) == 2
        assert (
            Path(str(tmp_path / "STDIN.o") + long.partition(".")[0]).read_text().split()[-1]
            == "done"
        )
    finally:
        daemon.kill(15)
