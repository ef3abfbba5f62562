"""LSF inside the wrappers that give quanta: what a quantum does to specials, in cases worked by
hand."""

from __future__ import annotations

from qbatch.model.machine_file import parse_machine
from qbatch.policies import load_policy
from qbatch.simulation import run
from tests.harness import workload_of
from tests.oracle import naive

SECOND = 1_000_000
TWO_HOSTS = """
schema = 1
single_host = true
[[host]]
name = "a"
cpus = 2
serves = ["short"]
[[host]]
name = "b"
cpus = 2
serves = ["other"]
[[class]]
name = "short"
time = 200
reserve_wait = 0
[[class]]
name = "other"
"""
ONE_HOST = """
schema = 1
single_host = true
[[host]]
name = "a"
cpus = 4
serves = ["first", "rest"]
[[class]]
name = "first"
time = 300
reserve_wait = 10
[[class]]
name = "rest"
reserve_wait = 10
"""


def times(
    policy: str, machine_file: str, jobs: list[tuple[int, int, int, int]]
) -> list[tuple[int, int]]:
    """Replay jobs (submit, procs, estimate, run time; seconds); return first start and end of
    each."""
    machine = parse_machine(machine_file, "machine.toml")
    rows = [
        naive.Job(n, submit * SECOND, procs, estimate * SECOND, run_time * SECOND)
        for n, (submit, procs, estimate, run_time) in enumerate(jobs)
    ]
    schedule = run(workload_of(rows, machine.procs), machine, load_policy(policy), is_audited=True)
    return [
        (int(start) // SECOND, int(end) // SECOND)
        for start, end in zip(schedule.start, schedule.end, strict=True)
    ]


def test_a_quantum_clears_the_special_of_its_job() -> None:
    jobs = [(0, 1, 150, 80), (0, 1, 20, 20), (0, 2, 300, 30), (1, 2, 100, 100), (40, 2, 10, 10)]
    # At 20 host a is kept for job 4; from 30 to 90 job 4 has its quantum on host b.  When job 1
    # ends at 80, job 4 does not wait: job 5 starts, and job 4 once more at 90.
    assert times("soon:inner=lsf", TWO_HOSTS, jobs)[3:] == [(30, 190), (80, 90)]


def test_a_quantum_that_no_other_pass_sees_leaves_the_special_of_its_job() -> None:
    jobs = [(0, 1, 150, 120), (0, 1, 20, 20), (0, 2, 300, 30), (1, 2, 100, 100), (95, 1, 100, 100)]
    # As above, but nothing happens while job 4 has its quantum: host a is still kept for it at 95,
    # and job 5 only gets a quantum.
    assert times("soon:inner=lsf", TWO_HOSTS, jobs)[3:] == [(30, 255), (95, 355)]
    # With a pass at 50 the special is over: job 5 starts at 95, and job 4 after it.
    seen = times("soon:inner=lsf", TWO_HOSTS, [*jobs[:4], (50, 1, 1, 1), jobs[4]])
    assert (seen[3], seen[5]) == ((30, 295), (95, 195))


def test_a_job_that_ends_in_its_quantum_ends_on_its_host_also_unseen() -> None:
    jobs = [(0, 4, 2000, 2000), (1, 4, 500, 500), (700, 4, 5, 5), (800, 4, 300, 300)]
    # Job 3 ends at 705, job 1 takes its processors back at once, and job 2 asks for the host all
    # the same: job 4, of a more urgent class, comes after it.
    ended = times("immediate:inner=lsf", ONE_HOST, jobs)
    assert ended == [(0, 2005), (2005, 2505), (700, 705), (2505, 2805)]
    # A job that arrives in the middle of the quantum of job 3 changes nothing in that.
    later = times("immediate:inner=lsf", ONE_HOST, [*jobs[:3], (702, 4, 1, 1), *jobs[3:]])
    assert later == [*ended[:3], (2505, 2506), (2506, 2806)]
