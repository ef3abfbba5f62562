"""What checks the oracle of EQspatial: random workloads, and cases of which every number was worked
out by hand."""

from tests.oracle.equispatial import GIB, HOUR, SECOND, Host, Job


def random_workload(rng):
    """Jobs that each fit on some host, hosts, the interval, whether 50 hours count."""
    kind = rng.random()
    if kind < 0.45:
        return indebted_workload(rng)
    if kind < 0.55:
        return standing_workload(rng)
    sizes = [2, 3, 4, 6, 8]
    hosts = [
        Host(rng.choice(sizes), rng.choice([1, 2, 3, 4, 8]) * GIB)
        for _ in range(rng.choice([1, 1, 2, 2, 3]))
    ]
    is_long = rng.random() < 0.3  # runs about 50 hours
    is_crowded = rng.random() < 0.5  # more processors are asked for than there are
    is_odd = rng.random() < 0.3  # times that are no multiples of each other
    unit = rng.choice([1, 5, 10]) * HOUR if is_long else rng.choice([1, 7, 30, 60]) * SECOND
    jobs = []
    submit = 0
    for sequence in range(1, rng.randint(2, 8) + 1):
        submit += rng.choice([0, 0, 0, 1] if is_crowded else [0, 0, 1, 1, 2, 5]) * unit
        submit += rng.randint(0, 5) if is_odd else 0
        run = rng.choice([0, 1, 2, 3, 5, 8, 10]) * unit + (rng.randint(0, 9) if is_odd else 0)
        if rng.random() < 0.2:
            run = rng.choice([0, 20, 59, 60, 61]) * SECOND
        if is_long and rng.random() < 0.2:
            run = 50 * HOUR + rng.choice([-1, 0, 1, HOUR])
        estimate = run if rng.random() < 0.5 else max(0, run + rng.choice([-1, 0, 1, 5]) * unit)
        host = rng.choice(hosts)
        procs = rng.randint(1 if not is_crowded else (host.cpus + 1) // 2, host.cpus)
        full, half = host.memory, host.memory // 2
        memory = rng.choice(
            [0, full, full, half] if is_crowded else [0, GIB // 2, GIB, half, full, full - GIB // 2]
        )
        used = rng.choice([0, memory // 2, memory])
        jobs.append(Job(sequence, submit, procs, memory, estimate, run, used))
    jobs = [
        job
        for job in jobs
        if any(host.cpus >= job.procs and host.memory >= job.memory for host in hosts)
    ]
    interval = rng.choice([0, 1, 5, 20]) * unit if rng.random() < 0.7 else 300 * SECOND
    return jobs, hosts, interval, rng.random() < 0.5


def indebted_workload(rng):
    """Jobs that wait for memory and come to crowded hosts, where others come after them."""
    hosts = [
        Host(rng.choice([4, 5, 6, 7, 8]), rng.choice([4, 5]) * GIB)
        for _ in range(rng.choice([1, 2, 2, 3]))
    ]
    least = min(host.cpus for host in hosts)
    unit = rng.choice([61, 90, 200]) * SECOND
    jobs = []
    for _ in hosts:  # they hold the memory
        run = rng.randint(2, 8) * unit
        jobs.append((rng.randint(0, 1) * unit, rng.randint(1, least), 4 * GIB, run))
    for _ in range(rng.choice([1, 1, 2])):  # they wait for it
        jobs.append(
            (
                rng.randint(1, 3) * unit,
                rng.randint(2, least),
                rng.choice([2, 4]) * GIB,
                rng.randint(2, 20) * unit,
            )
        )
    for _ in range(rng.randint(1, 8 - len(jobs))):  # they need none, or come for a quantum first
        memory = rng.choice([0, 0, 0, 0, 0, 4]) * GIB
        jobs.append(
            (rng.randint(1, 16) * unit, rng.randint(2, least), memory, rng.randint(1, 9) * unit)
        )
    jobs.sort(key=lambda job: job[0])
    kinds = [
        Job(sequence, submit, procs, memory, run, run, rng.choice([0, 0, memory]))
        for sequence, (submit, procs, memory, run) in enumerate(jobs, 1)
    ]
    return kinds, hosts, rng.choice([0, 0, 1, 3]) * unit // 2 // SECOND * SECOND, False


def standing_workload(rng):
    """More jobs than processors, where one that waited for memory comes to later ones."""
    hosts = [
        Host(rng.choice([1, 2]), rng.choice([6, 8]) * GIB) for _ in range(rng.choice([1, 1, 2]))
    ]
    jobs = []
    submit = 0
    for sequence in range(1, 9):
        submit += rng.choice([0, 1, 2]) * 30 * SECOND
        procs = rng.randint(1, max(host.cpus for host in hosts))
        run = rng.choice([30, 60, 150, 300]) * SECOND
        jobs.append(Job(sequence, submit, procs, rng.choice([1, 2, 3, 4, 6]) * GIB, run, run, 0))
    return jobs, hosts, rng.choice([0, 0, 45]) * SECOND, False


FEATURES = [
    "rule_a",
    "rule_a_tie",
    "rule_b",
    "rule_b_choice",
    "rule_b_less_extra",
    "rule_b_extra_decides",
    "skipped_ahead",
    "stands_still",
    "stopped",
    "owed",
    "paid",
    "has_all",
    "has_not_all",
    "favoured_share",
    "over50",
    "no_quantum",
    "quantum_on_idle",
    "quantum_shrinks",
    "quantum_done",
    "quantum_over",
    "quantum_memory",
    "divided",
    "divided_later",
    "divided_by_force",
    "rounded_up",
    "done",
]
"""What the oracle counts; random workloads must show each of them."""


def job(sequence, submit, procs, run, memory=0.0, used=0.0):
    """Times in seconds, memory in GB."""
    return Job(
        sequence,
        submit * SECOND,
        procs,
        int(memory * GIB),
        run * SECOND,
        run * SECOND,
        int(used * GIB),
    )


def host(cpus, memory):
    return Host(cpus, memory * GIB)


HOURS = 3600
TICK = 0.000001

HAND_CASES = {
    # Job 1 is alone from 0 on; the next division by the interval is at 1200.  Job 2 finds 2 GB
    # where it asks for 2.5: a quantum, for which job 1 shrinks to 1, at once.  At 120 job 1 has its
    # 3 back, at once: 300 + 20 of 540 are done, 220 / 3 = 73.3...
    "a trial run gives back what it took": (
        [host(4, 3)],
        [job(1, 0, 3, 180, 1), job(2, 100, 3, 20, 2.5)],
        {"interval": 1200},
        {1: [(0, 100, 3, 0), (100, 120, 1, 0), (120, 193.333334, 3, 0)], 2: [(100, 120, 3, 0)]},
    ),
    # Divided at 0; at 10 job 2 takes the 4 that are idle, at 50 job 1 leaves 4.  The trial run of
    # 60 takes 3 of them: nothing is divided for that.  Job 2 has its 6 at 300: 290 * 4 = 1160 of
    # 1200 are done, 40 / 6 = 6.6...
    "a trial run on idle processors is no reason to divide": (
        [host(8, 5)],
        [job(1, 0, 4, 50), job(2, 10, 6, 200, 4), job(3, 60, 3, 30, 5)],
        {"interval": 300},
        {1: [(0, 50, 4, 0)], 2: [(10, 300, 4, 0), (300, 306.666667, 6, 0)], 3: [(60, 90, 3, 0)]},
    ),
    # The trial run of 10 uses 2 GB, more than 1: its quantum ends where it begins.  From 100 on it
    # has all the 3 it asks for.
    "a quantum with too much memory takes no time": (
        [host(4, 5)],
        [job(1, 0, 4, 100, 4), job(2, 10, 3, 30, 2, 2)],
        {},
        {1: [(0, 100, 4, 0)], 2: [(100, 130, 3, 0)]},
    ),
    # Jobs 1 and 2 go to hosts 0 and 1.  Job 3 finds no memory, not even 1 GB.  Job 4 (at 50): 8/16
    # on both, so host 0. Job 3 would have 4 of 8: with job 1 on host 0, after 50 with job 2 on host
    # 1 (8/16 against 8/24). Job 1 has done 400 of 800 by 50, and ends at 150 on 4.  Job 3 is owed
    # 600: on host 0 it has 7, job 4 has 1, shares are 4 and 4: 3 too many for 200 s, until 350.
    # Meanwhile host 0 counts as one of 5.  Job 5 (at 160): 5/24 or 8/16; job 6 (at 170): 5/22 or
    # 8/22; both host 1.  Job 7 (at 200): 5/20 or 8/26: host 1, though 8/20 is more than 8/26.
    # There it has 2 of 8, for 20 s. Job 3 has done 1400 by 350, 6600 are left: 1650 s on 4.  Job 4:
    # 400 + 200 + 6600, 800 left: 100 s on 8.
    "extra processors make a host smaller": (
        [host(8, 4), host(8, 4)],
        [
            job(1, 0, 8, 100, 4),
            job(2, 0, 8, 1000, 4),
            job(3, 0, 8, 1000, 4),
            job(4, 50, 8, 1000),
            job(5, 160, 8, 1000),
            job(6, 170, 6, 1000),
            job(7, 200, 4, 10),
        ],
        {},
        {
            1: [(0, 50, 8, 0), (50, 150, 4, 0)],
            3: [(150, 350, 7, 0), (350, 2000, 4, 0)],
            4: [(50, 150, 4, 0), (150, 350, 1, 0), (350, 2000, 4, 0), (2000, 2100, 8, 0)],
            7: [(200, 220, 2, 1)],
        },
    ),
    # Job 1 goes to host 1 (fewest idle), job 2 to host 0.  Job 3 has no memory: 2 are idle on both:
    # its quantum is on host 0 and is thrown away.  It waits until 270 and is owed its share of 2,
    # which is all that it asks for.  On host 1 it has 2 and its share is 2: nothing extra.  Job 4
    # of the same instant: 7/10 or 5/7: host 1, where it has 3: 150 s.
    "a job that has just come has a share": (
        [host(7, 5), host(5, 5)],
        [job(1, 0, 3, 270, 4), job(2, 0, 5, 630, 4), job(3, 0, 2, 720, 4), job(4, 270, 5, 90)],
        {},
        {
            1: [(0, 270, 3, 1)],
            2: [(0, 630, 5, 0)],
            3: [(0, 60, 2, 0), (270, 990, 2, 1)],
            4: [(270, 420, 3, 1)],
        },
    ),
    # Jobs 1 and 2 have 4 each, 3 each from 40 h on, with 2 for job 3.  At 50 h and a microsecond
    # they are long: one is left to job 3, and 7 are shared: 4 and 3.  Job 3 has 20 of 40
    # processor-hours by 50 h, and one processor-microsecond more: it ends at 70 h less one.  Job 1
    # has 160 + 30 by 50 h, 310 - 190 = 120 on 4 take 30 h, and a microsecond more for the one in
    # which it had 3.  Job 2 has 160 + 90 by 70 h, 290 by 80 h; 336 - 290 = 46 on 8 take 5.75 h.
    "several long jobs share all but one": (
        [host(8, 1)],
        [job(1, 0, 8, 139500), job(2, 0, 8, 42 * HOURS), job(3, 40 * HOURS, 8, 5 * HOURS)],
        {"is_over50": True},
        {
            1: [
                (0, 40 * HOURS, 4, 0),
                (40 * HOURS, 50 * HOURS + TICK, 3, 0),
                (50 * HOURS + TICK, 80 * HOURS + TICK, 4, 0),
            ],
            2: [
                (0, 40 * HOURS, 4, 0),
                (40 * HOURS, 70 * HOURS - TICK, 3, 0),
                (70 * HOURS - TICK, 80 * HOURS + TICK, 4, 0),
                (80 * HOURS + TICK, 85.75 * HOURS + TICK, 8, 0),
            ],
            3: [
                (40 * HOURS, 50 * HOURS + TICK, 2, 0),
                (50 * HOURS + TICK, 70 * HOURS - TICK, 1, 0),
            ],
        },
    ),
    # Job 1 asks for 2, which is its share of 4, for 70 h.  At 60 h job 2 has executed for 50 hours
    # and may have all; but job 1 is long itself, and keeps its 2: of 4 for requests of 2 and 4 it
    # has 2.  Job 2 has 120 of 160 processor-hours on 2 by 70 h, and 40 on 4: 10 h.
    "a long job keeps what it asks for": (
        [host(4, 1)],
        [job(1, 0, 2, 70 * HOURS), job(2, 10 * HOURS, 4, 40 * HOURS)],
        {"is_over50": True},
        {
            1: [(0, 70 * HOURS, 2, 0)],
            2: [(10 * HOURS, 70 * HOURS, 2, 0), (70 * HOURS, 80 * HOURS, 4, 0)],
        },
    ),
}
"""Label -> hosts, jobs, parameters, pieces by sequence: begin and end in seconds, processors,
host."""
