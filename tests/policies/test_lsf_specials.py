"""Which job gets a special of LSF, and which jobs a job at a limit keeps waiting: cases worked by
hand, by both drivers."""

from __future__ import annotations

from qbatch.model.machine_file import parse_machine
from qbatch.policies import load_policy
from qbatch.simulation import run
from tests.harness import same_schedule, workload_of
from tests.oracle import naive

SECOND = 1_000_000


def started(machine_file: str, jobs: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    """Replay jobs (submit, procs, estimate, run time; seconds); return the start and the host of
    each."""
    machine = parse_machine(machine_file, "machine.toml")
    rows = [
        naive.Job(n, submit * SECOND, procs, estimate * SECOND, run_time * SECOND)
        for n, (submit, procs, estimate, run_time) in enumerate(jobs)
    ]
    work = workload_of(rows, machine.procs)
    one, other = (
        run(work, machine, load_policy("lsf"), driver=each, is_audited=True)
        for each in ("engine", "compiled")
    )
    assert same_schedule(one, other)
    hosts = [0] * len(jobs) if one.host is None else one.host.tolist()
    return list(zip((one.start // SECOND).tolist(), hosts, strict=True))


LIMITED = """
schema = 1
single_host = true
[[host]]
name = "a"
cpus = 2
serves = ["first", "rest"]
[[class]]
name = "first"
time = 300
limit = 1
reserve_wait = 10
[[class]]
name = "rest"
reserve_wait = 10
"""


def test_a_job_at_the_limit_of_its_class_asks_for_no_special_and_blocks_none() -> None:
    # Job 2 waits at the limit of class first: job 3, of a lower class, starts next to job 1.  When
    # job 3 ends, job 4 asks for the host, not job 2, so that job 5 waits for job 4.
    jobs = [
        (0, 1, 300, 100),
        (0, 1, 300, 50),
        (0, 1, 1000, 30),
        (1, 2, 1000, 40),
        (35, 1, 1000, 10),
    ]
    assert started(LIMITED, jobs) == [(0, 0), (140, 0), (0, 0), (100, 0), (140, 0)]


RESTRICTED = """
schema = 1
single_host = true
[[host]]
name = "general"
cpus = 2
serves = ["first", "rest"]
[[host]]
name = "restricted"
cpus = 2
serves = ["first"]
[[class]]
name = "first"
time = 300
reserve_wait = 10
[[class]]
name = "rest"
"""


def test_of_two_hosts_on_which_jobs_end_together_the_restricted_one_is_asked_for() -> None:
    # At 50 s a job ends on each host, and job 5 asks for one of them: host 1, which serves one
    # class.  So job 6 goes to host 0.
    jobs = [
        (0, 1, 1000, 50),
        (0, 1, 1000, 200),
        (0, 1, 300, 50),
        (0, 1, 300, 100),
        (1, 2, 300, 10),
        (60, 1, 300, 10),
    ]
    assert started(RESTRICTED, jobs) == [(0, 0), (0, 0), (0, 1), (0, 1), (100, 1), (60, 0)]
