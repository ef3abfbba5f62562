"""What checks the oracle of the Origin 2000: random workloads, an audit of finished runs, cases
worked by hand."""

import random

from tests.oracle.origin2000 import (
    GIB,
    LXF,
    LXF_W,
    PRIORITY,
    SECOND,
    Host,
    Job,
    Outcome,
    TimeClass,
    simulate,
)


def audit(
    jobs, hosts, time_classes, policy, outcome, log, quantum=60 * SECOND, protection=600 * SECOND
):
    """Replays the log with its own accounts."""
    by_sequence = {}
    for job in jobs:
        by_sequence[job.sequence] = job
    by_name = {}
    for host in hosts:
        by_name[host.name] = host
    state = {}  # sequence -> (what, host name): "runs", "stopped", "trial"
    segments = {}  # sequence -> executed since the last start from scratch
    since = {}
    preempted_by = {}  # trial run -> list of the jobs that it preempted
    pending = []  # suspended, trial run not yet seen
    quanta_of = {}
    last = None
    for time, what, sequence, name in log:
        assert last is None or time >= last
        last = time
        job = by_sequence[sequence]
        assert time >= job.submit
        if what == "start":
            assert sequence not in state and outcome[sequence].final_start == time
            state[sequence] = ("runs", name)
            segments[sequence] = 0
            since[sequence] = time
        elif what == "suspend":
            assert state[sequence] == ("runs", name) and time - since[sequence] >= protection
            state[sequence] = ("stopped", name)
            segments[sequence] += time - since[sequence]
            pending.append(sequence)
        elif what == "trial":
            assert sequence not in state and sequence not in quanta_of
            if policy == "immediate":
                assert time == job.submit
            else:
                assert not pending
            state[sequence] = ("trial", name)
            quanta_of[sequence] = time
            preempted_by[sequence] = pending
            since[sequence] = time
            segments[sequence] = 0
            pending = []
        elif what in ("end", "leave"):
            assert state[sequence][0] in ("runs", "trial") and state[sequence][1] == name
            done = segments[sequence] + time - since[sequence]
            if what == "end":
                assert done == min(job.run, job.estimate)
                assert outcome[sequence].end == time and outcome[sequence].host == name
            else:
                big = job.used_memory > min(job.memory, GIB)
                assert (big and done == 0) or (not big and done == quantum)
            del state[sequence]
        elif what == "resume":
            assert state[sequence] == ("stopped", name)
            state[sequence] = ("runs", name)
            since[sequence] = time
        if pending:
            continue  # a suspension and its trial run are one action
        resuming = False
        for g in list(preempted_by):
            if g not in state or state[g][0] != "trial":
                for v in preempted_by[g]:
                    if state.get(v, ("", ""))[0] == "stopped":
                        resuming = True
                if not resuming:
                    del preempted_by[g]
        for host in hosts:
            cpus = 0
            memory = 0
            sizes = {}
            for s, (how, where) in state.items():
                if where != host.name:
                    continue
                j = by_sequence[s]
                if how == "trial":
                    memory += min(j.memory, GIB)
                    cpus += j.procs
                else:
                    memory += j.memory
                    if how == "runs":
                        cpus += j.procs
                sizes[j.size_class] = sizes.get(j.size_class, 0) + 1
            assert cpus <= host.cpus, (host, time, cpus)
            assert memory <= host.memory, (host, time, memory)
            if policy == "lsf":
                for size in sizes:
                    assert size in host.serves
                    assert size not in host.limits or sizes[size] <= host.limits[size]
        if policy == "lsf":
            for c in time_classes:
                if c.limit is not None:
                    assert sum(1 for s in state if by_sequence[s].time_class == c.name) <= c.limit
    assert not state and not pending
    for job in jobs:
        o = outcome[job.sequence]
        assert o.end is not None, ("lost", job)
        stopped = 0
        for a, b in o.suspensions:
            assert o.final_start <= a <= b <= a + quantum and b <= o.end
            stopped += b - a
        assert o.end - o.final_start - stopped == min(job.run, job.estimate)
        assert job.submit <= o.first_start <= o.final_start
        assert o.quantum == (job.sequence in quanta_of)


def random_workload(rng):
    """Small machine, small jobs, many ties; every job fits on some empty host that serves it."""
    hosts = []
    for i in range(rng.choice([1, 1, 2, 3])):
        serves = rng.choice([("lj", "mj", "sj"), ("lj", "mj", "sj"), ("sj",), ("mj",)])
        if i == 0:
            serves = ("lj", "mj", "sj")
        limits = {}
        for size in serves:
            if rng.random() < 0.4:
                limits[size] = rng.randint(1, 3)
        hosts.append(Host("h%d" % i, rng.choice([4, 8]), rng.choice([4, 8]) * GIB, serves, limits))
    hosts.reverse() if rng.random() < 0.5 else None
    classes = [
        TimeClass("vst", None, rng.choice([0, 60, 900]) * SECOND, True),
        TimeClass("st", None, rng.choice([60, 300, 1800]) * SECOND, False),
        TimeClass("mt", rng.choice([None, 1, 2]), rng.choice([60, 600]) * SECOND, False),
        TimeClass("lt", rng.choice([None, 1]), rng.choice([None, 0, 60 * SECOND]), False),
    ]
    jobs = []
    submit = 0
    short = rng.random() < 0.5
    grain = rng.choice([1, 30, 60, 300]) * SECOND
    for i in range(rng.randint(2, 24)):
        submit += rng.choice([0, 0, 0, 1, 1, 2, 5]) * grain
        estimate = rng.choice([0, 1, 30, 60, 61, 300, 600, 900, 1800, 3600]) * SECOND
        if short:
            estimate = rng.choice([0, 30, 60, 90, 120, 660, 700, 1200]) * SECOND
        run = estimate if rng.random() < 0.4 else rng.randint(0, 3700) * SECOND
        if rng.random() < 0.2:
            run = rng.randint(0, 60 * SECOND)
        procs = rng.randint(1, 4)
        memory = rng.choice([0, GIB // 2, GIB, 2 * GIB, 4 * GIB])
        used = rng.choice([0, memory, memory // 2, memory // 4])
        jobs.append(
            Job(
                i + 1,
                submit,
                procs,
                memory,
                estimate,
                run,
                used,
                rng.choice(["vst", "st", "mt", "lt"]),
                "lj" if procs > 2 else ("mj" if procs == 2 else "sj"),
            )
        )
    return jobs, hosts, classes


def small(name, cpus=4, memory=8, serves=("lj", "mj", "sj"), limits=None):
    return Host(name, cpus, memory * GIB, serves, limits or {})


def job(
    sequence, submit, procs, estimate, run=None, memory=0, used=0, time_class="st", size_class="sj"
):
    """Times in seconds, memory in bytes."""
    return Job(
        sequence,
        submit * SECOND,
        procs,
        memory,
        estimate * SECOND,
        (estimate if run is None else run) * SECOND,
        used,
        time_class,
        size_class,
    )


def expect(label, outcome, wanted):
    """wanted: sequence -> (first start, final start, end, host, suspensions, quantum), seconds."""
    for sequence in wanted:
        o = outcome[sequence]
        first, final, end, host, suspensions, quantum = wanted[sequence]
        want = Outcome(
            first * SECOND,
            final * SECOND,
            end * SECOND,
            host,
            [(a * SECOND, b * SECOND) for a, b in suspensions],
            quantum,
        )
        assert o == want, (label, sequence, o, want)


def plain(start, end, host="a"):
    return (start, start, end, host, [], False)


CLASSES = [
    TimeClass("vst", None, 100 * SECOND, True),
    TimeClass("st", None, 100 * SECOND, False),
    TimeClass("lt", 1, 100 * SECOND, False),
]


def hand_cases():
    # 1. fcfs: 1 runs 3 of 4 processors until 100.  2 wants 4: reserved at 100.  3 (1 proc, 100 s)
    #    ends exactly at 100: starts at 0. 4 (1 proc, 101 s) would delay 2 and has no processor
    #    anyway: starts when 2 ends, at 150.
    jobs = [job(1, 0, 3, 100), job(2, 0, 4, 50), job(3, 0, 1, 100), job(4, 0, 1, 101)]
    expect(
        "fcfs",
        simulate(jobs, [small("a")], CLASSES, "fcfs"),
        {1: plain(0, 100), 2: plain(100, 150), 3: plain(0, 100), 4: plain(150, 251)},
    )

    # 2. memory is the second dimension: 8 GiB.  1 holds 6 until 100; 2 wants 4 GiB: reserved at
    #    100.  3 (1 proc, 2 GiB, 1000 s) fits with 1 now (8) and with 2 later (6): starts.  4 (3
    #    GiB): 1+3 use 8 now; at 100, 2+3 use 6; 2 GiB left: at 200, when 2 ends.
    jobs = [
        job(1, 0, 1, 100, memory=6 * GIB),
        job(2, 0, 1, 100, memory=4 * GIB),
        job(3, 0, 1, 1000, memory=2 * GIB),
        job(4, 0, 1, 10, memory=3 * GIB),
    ]
    expect(
        "memory",
        simulate(jobs, [small("a")], CLASSES, "fcfs"),
        {1: plain(0, 100), 2: plain(100, 200), 3: plain(0, 1000), 4: plain(200, 210)},
    )

    # 3. start host: fewest free processors.  1 (2 procs) on a (tie 4/4... b has 8): a.  2 (1 proc):
    #    a has 2 free: a.  3 (2): only b.
    jobs = [job(1, 0, 2, 100), job(2, 0, 1, 100), job(3, 0, 2, 100)]
    expect(
        "fewest",
        simulate(jobs, [small("b", 8), small("a", 4)], CLASSES, "fcfs"),
        {1: plain(0, 100), 2: plain(0, 100), 3: plain(0, 100, "b")},
    )

    # 4. sjf, sticky: 1 holds all until 100.  2 (4 procs, 50 s, at 10) is reserved at 100.  3 (4
    #    procs, 10 s, at 20) is shorter but comes later: 2 starts at 100, 3 at 150.  4 (4 procs, 5
    #    s, at 30): at 100 the slot is free, shortest first: 4 is reserved at 150.
    jobs = [job(1, 0, 4, 100), job(2, 10, 4, 50), job(3, 20, 4, 10), job(4, 30, 4, 5)]
    expect(
        "sjf",
        simulate(jobs, [small("a")], CLASSES, "sjf"),
        {1: plain(0, 100), 2: plain(100, 150), 4: plain(150, 155), 3: plain(155, 165)},
    )

    # 5. bypass: weights procs 0.5, bypass 1.  1 (3 procs) until 100.  2 (3 procs, at 1): 1.5,
    #    reserved at 100.  3 (1 proc, at 2): 0.5, starts behind 2, which gains 1: 2.5.  4 (4 procs,
    #    at 3): 2, so 2 stays first: 2 at 100, 4 at 110. With bypass weight 0, 4 (2) comes before 2
    #    (1.5): 4 at 100, 2 at 110.
    jobs = [job(1, 0, 3, 100), job(2, 1, 3, 10), job(3, 2, 1, 10), job(4, 3, 4, 10)]
    expect(
        "bypass 1",
        simulate(jobs, [small("a")], CLASSES, "priority", weights={"bypass": 1, "procs": 0.5}),
        {3: plain(2, 12), 2: plain(100, 110), 4: plain(110, 120)},
    )
    expect(
        "bypass 0",
        simulate(jobs, [small("a")], CLASSES, "priority", weights={"bypass": 0, "procs": 0.5}),
        {3: plain(2, 12), 4: plain(100, 110), 2: plain(110, 120)},
    )
    # 5b. 3.3 as in the table (wait hours + 5 (w + r)/r + 0.2 procs).  1 (4 procs) until 3600.  2 (4
    # procs, 36000 s, at 0) and 3 (4 procs, 600 s, at 1800).  At 3600: 2 = 1 + 5 * 1.1 + 0.8 = 7.3;
    # 3 = 0.5 + 5 * 4 + 0.8 = 21.3: 3 first.
    jobs = [job(1, 0, 4, 3600), job(2, 0, 4, 36000), job(3, 1800, 4, 600)]
    expect(
        "priority",
        simulate(jobs, [small("a")], CLASSES, "fcfs"),
        {2: plain(3600, 39600), 3: plain(39600, 40200)},
    )
    expect(
        "priority",
        simulate(jobs, [small("a")], CLASSES, "priority", weights=PRIORITY),
        {1: plain(0, 3600), 3: plain(3600, 4200), 2: plain(4200, 40200)},
    )

    # 6. immediate: 1 (4 procs, 2000 s).  2 (3 procs, estimate 100, run 30) arrives at 700: 1 has
    #    run 700 >= 600: suspended at 700; 2 ends at 730, 1 resumes and ends at 2030.  3 (1 proc, at
    #    800): 1 restarted at 730: protected: waits until 2030.
    jobs = [job(1, 0, 4, 2000), job(2, 700, 3, 100, 30), job(3, 800, 1, 10)]
    expect(
        "immediate",
        simulate(jobs, [small("a")], CLASSES, "immediate"),
        {
            1: (0, 0, 2030, "a", [(700, 730)], False),
            2: (700, 700, 730, "a", [], True),
            3: plain(2030, 2040),
        },
    )
    # 6b. as 6, 2 runs 90 s: leaves at 760, waits, starts again at 2060 from scratch, ends 2150.  3
    # (1 proc, 5 s, at 710) during the quantum: the processor that 1 freed beyond the need of 2 is
    # not free; no job to preempt: waits; at 2060 both start (2 first).
    jobs = [job(1, 0, 4, 2000), job(2, 700, 3, 100, 90), job(3, 710, 1, 5)]
    expect(
        "immediate, leaves",
        simulate(jobs, [small("a")], CLASSES, "immediate"),
        {
            1: (0, 0, 2060, "a", [(700, 760)], False),
            2: (700, 2060, 2150, "a", [], True),
            3: plain(2060, 2065),
        },
    )
    # 6c. too much memory: the quantum of 2 ends at its first instant; 1 is preempted once, for no
    # time.  3 arrives at 1299: 599 s after the restart at 700: protected.  4 at 1300: 600 s:
    # suspends 1 (and ends at 1310).
    jobs = [
        job(1, 0, 4, 2000),
        job(2, 700, 4, 100, 30, 2 * GIB, 2 * GIB),
        job(3, 1299, 4, 100, 10),
        job(4, 1300, 4, 200, 10),
    ]
    expect(
        "immediate, memory",
        simulate(jobs, [small("a")], CLASSES, "immediate", inner="fcfs"),
        {
            1: (0, 0, 2010, "a", [(700, 700), (1300, 1310)], False),
            2: (700, 2010, 2040, "a", [], True),
            3: plain(2040, 2050),
            4: (1300, 1300, 1310, "a", [], True),
        },
    )
    # 6d. smallest leftover: b (8 procs) full with a job of 8, a (4) full with one of 4.  3 wants 3:
    # leftover 5 on b, 1 on a: a.
    jobs = [job(1, 0, 4, 2000), job(2, 0, 8, 2000), job(3, 600, 3, 100, 60)]
    expect(
        "leftover",
        simulate(jobs, [small("b", 8), small("a", 4)], CLASSES, "immediate"),
        {
            1: (0, 0, 2060, "a", [(600, 660)], False),
            2: plain(0, 2000, "b"),
            3: (600, 600, 660, "a", [], True),
        },
    )

    # 7. soon: 1 (3 procs, 100 s).  2 (4 procs) reserved at 100.  3 (1 proc, 500 s, run 20) may not
    #    start (2), but gets a quantum at 0 and is done at 20.  4 (1 proc, 500 s) gets its quantum
    #    at 20 (the event), leaves at 80; 2 runs 100..150; 4 from 150.
    jobs = [job(1, 0, 3, 100), job(2, 0, 4, 50), job(3, 0, 1, 500, 20), job(4, 0, 1, 500)]
    expect(
        "soon",
        simulate(jobs, [small("a")], CLASSES, "soon", inner="fcfs"),
        {
            1: plain(0, 100),
            2: plain(100, 150),
            3: (0, 0, 20, "a", [], True),
            4: (20, 150, 650, "a", [], True),
        },
    )
    # 7b. a soon quantum delays a reservation: as 7, but 3 arrives at 90: quantum 90..150 delays 2
    # from 100 to 150. At 100 1 ends; 2 does not fit (1 processor of the trial run), gets its own
    # quantum?  No: 4 processors are not idle.
    jobs = [job(1, 0, 3, 100), job(2, 0, 4, 50), job(3, 90, 1, 500)]
    expect(
        "soon delays",
        simulate(jobs, [small("a")], CLASSES, "soon", inner="fcfs"),
        {1: plain(0, 100), 2: plain(150, 200), 3: (90, 200, 700, "a", [], True)},
    )

    # 8. lsf: an lj that waits blocks lower size classes, but not other lj.  1 (lj, 3 procs, until
    #    50).  2 (lj, 4 procs) blocked. 3 (sj, 1 proc) may not start on the general host a; on the
    #    restricted host s (sj only) it starts.  4 (lj, 1 proc) skips 2.
    jobs = [
        job(1, 0, 3, 50, size_class="lj"),
        job(2, 0, 4, 10, size_class="lj"),
        job(3, 0, 1, 10),
        job(4, 0, 1, 10, size_class="lj"),
    ]
    expect(
        "lsf",
        simulate(jobs, [small("a"), small("s", 1, 1, ("sj",))], CLASSES, "lsf"),
        {1: plain(0, 50), 2: plain(50, 60), 3: plain(0, 10, "s"), 4: plain(0, 10)},
    )
    # 8b. lsf special: reserve wait 100 s.  1 (3 procs, 0..300), 2 (sj, 1 proc, 0..150), 3 (lj, 4
    # procs, at 10) waits.  4 (lj, 1 proc, 400 s, at 140): fits nothing until 150.  At 150 2 ends: 3
    # has waited 140 > 100: special; a stays idle next to 1 until 300; 3 runs 300..310; then 4.
    # Without the special 4 would have started at 150.
    jobs = [
        job(1, 0, 3, 300, size_class="lj"),
        job(2, 0, 1, 150),
        job(3, 10, 4, 10, size_class="lj"),
        job(4, 140, 1, 400, size_class="lj"),
    ]
    expect(
        "special",
        simulate(jobs, [small("a")], CLASSES, "lsf"),
        {1: plain(0, 300), 2: plain(0, 150), 3: plain(300, 310), 4: plain(310, 710)},
    )
    # 8c. wait exactly the reserve wait is not enough: 2 ends at 110 (3 waited 100): 4 starts at...
    # it arrives at 105: at 110.
    jobs = [
        job(1, 0, 3, 300, size_class="lj"),
        job(2, 0, 1, 110),
        job(3, 10, 4, 10, size_class="lj"),
        job(4, 105, 1, 400, size_class="lj"),
    ]
    expect(
        "no special yet",
        simulate(jobs, [small("a")], CLASSES, "lsf"),
        {4: plain(110, 510), 3: plain(510, 520)},
    )
    # 8d. system limit lt = 1: 2 (lt) neither starts nor blocks: 3 starts at 0; 2 at 100.  vst
    # first: 5 before 4 at 100.
    jobs = [
        job(1, 0, 1, 100, time_class="lt", size_class="lj"),
        job(2, 0, 1, 50, time_class="lt", size_class="lj"),
        job(3, 0, 3, 100),
        job(4, 1, 3, 10),
        job(5, 2, 3, 10, time_class="vst"),
    ]
    expect(
        "system limit",
        simulate(jobs, [small("a")], CLASSES, "lsf"),
        {
            1: plain(0, 100),
            2: plain(100, 150),
            3: plain(0, 100),
            5: plain(100, 110),
            4: plain(110, 120),
        },
    )
    # 8e. host limit lj <= 1: with 1 running, size lj is full: the sj 3 passes the waiting lj 2.
    jobs = [job(1, 0, 1, 100, size_class="lj"), job(2, 0, 1, 50, size_class="lj"), job(3, 0, 1, 10)]
    expect(
        "host limit",
        simulate(jobs, [small("a", limits={"lj": 1})], CLASSES, "lsf"),
        {1: plain(0, 100), 2: plain(100, 150), 3: plain(0, 10)},
    )


def self_check(count=300, seed=2000):
    hand_cases()
    settings = [
        ("lsf", {}),
        ("lsf", {"limited_special_blocks": True, "special_order": "host"}),
        ("priority", {"weights": PRIORITY}),
        ("priority", {"weights": LXF_W, "depth": 2}),
        ("priority", {"weights": LXF, "depth": None}),
        ("priority", {"weights": {"memory": 1, "pe": 0.5, "bypass": 2, "wait": 1}}),
        ("fcfs", {}),
        ("fcfs", {"depth": 3}),
        ("sjf", {}),
        ("sjf", {"depth": 3}),
        ("sjf", {"depth": None}),
    ]
    for wrapper in ("immediate", "soon"):
        settings += [
            (wrapper, {"weights": LXF_W}),
            (wrapper, {"weights": PRIORITY, "depth": 3}),
            (wrapper, {"inner": "fcfs"}),
            (wrapper, {"inner": "sjf"}),
            (wrapper, {"inner": "sjf", "depth": 3, "trial_reservation": "keep"}),
            (
                wrapper,
                {
                    "inner": "sjf",
                    "depth": 2,
                    "trial_reservation": "lazy",
                    "preempted_end": "unshifted",
                },
            ),
            (
                wrapper,
                {
                    "preempted_end": "unshifted",
                    "quantum_end": "estimate",
                    "soon_host": "first",
                    "slowdown_counts_quantum": False,
                },
            ),
        ]
    for policy, parameters in settings:
        rng = random.Random(seed)
        waited = quanta = stops = 0
        for _number in range(count):
            jobs, hosts, classes = random_workload(rng)
            log = []
            outcome = simulate(jobs, hosts, classes, policy, log=log, **parameters)
            audit(jobs, hosts, classes, policy, outcome, log)
            for j in jobs:
                o = outcome[j.sequence]
                waited += o.final_start > j.submit
                quanta += o.quantum
                stops += len(o.suspensions)
        print(
            policy,
            parameters,
            "ok: %d workloads, %d jobs waited, %d quanta, %d suspensions"
            % (count, waited, quanta, stops),
        )


if __name__ == "__main__":
    self_check()
