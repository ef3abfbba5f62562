"""Oracle for the scheduling policies of paper 004 (NCSA Origin 2000), written from the
specification alone (docs/spec/papers.md 0, 3.1-3.4, 3.7; docs/design.md "The meaning of one
instant").  Times: integer microseconds.  Memory: bytes. Plain and slow on purpose."""

from dataclasses import dataclass

SECOND = 1_000_000
HOUR = 3600 * SECOND
MIB = 1024 * 1024
GIB = 1024 * MIB


@dataclass(frozen=True)
class Host:
    name: str
    cpus: int
    memory: int
    serves: tuple
    limits: dict


@dataclass(frozen=True)
class TimeClass:
    name: str
    limit: object  # how many may run in the system; None = no limit
    reserve_wait: object  # microseconds; None = never asks for a special
    goes_first: bool


@dataclass(frozen=True)
class Job:
    sequence: int
    submit: int
    procs: int
    memory: int
    estimate: int
    run: int
    used_memory: int
    time_class: str
    size_class: str


@dataclass
class Outcome:
    first_start: object  # None: never started (fits on no host)
    final_start: object
    end: object
    host: object  # name of the host of the final start
    suspensions: list
    quantum: bool


# The table of 3.3.  Keys: wait, slowdown, procs, memory, pe, bypass (W_w, W_x, W_p, W_m, W_pe,
# W_bypass).
PRIORITY = {"wait": 1.0, "slowdown": 5.0, "procs": 0.2}
LXF_W = {"wait": 0.0167, "slowdown": 1.0}
LXF = {"slowdown": 1.0}


class Held:
    """A job that holds something on a host: it runs, is suspended, or has the trial run of a
    quantum."""

    def __init__(self, job, host, start, memory):
        self.job = job
        self.host = host  # index of the host
        self.start = start  # last start or resumption
        self.memory = memory  # memory held
        self.executed = 0  # executed before self.start, since the last start from scratch
        self.is_trial = False
        self.suspended_at = None
        self.by = None  # the trial run that suspended it
        # Processors taken from the idle ones (of a trial run: its part that no preempted job had)
        self.own = job.procs
        self.preempted = []
        self.quantum_end = None  # the end of the quantum as the scheduler knows it
        self.end = None  # actual end (None while suspended)


class Machine:
    def __init__(self, jobs, hosts, log):
        self.hosts = hosts
        self.log = log
        self.now = 0
        self.held = []
        self.waiting = []
        self.outcome = {}
        self.discarded = {}  # executed time that a quantum threw away
        for job in jobs:
            self.outcome[job.sequence] = Outcome(None, None, None, None, [], False)
            self.discarded[job.sequence] = 0

    def note(self, what, job, host):
        if self.log is not None:
            self.log.append((self.now, what, job.sequence, self.hosts[host].name))

    def free(self, host):
        # Preempted jobs count as holding their processors, a trial run only what it took from the
        # idle ones: so what preempted jobs freed beyond the need of the trial run is not free.
        left = self.hosts[host].cpus
        for h in self.held:
            if h.host == host:
                left -= h.own
        return left

    def free_memory(self, host):
        left = self.hosts[host].memory
        for h in self.held:
            if h.host == host:
                left -= h.memory
        return left

    def fits_empty(self, job, host):
        return job.procs <= self.hosts[host].cpus and job.memory <= self.hosts[host].memory

    def fits_now(self, job, host):
        return job.procs <= self.free(host) and job.memory <= self.free_memory(host)

    def start(self, job, host):
        assert self.fits_now(job, host)
        self.waiting.remove(job)
        h = Held(job, host, self.now, job.memory)
        h.end = self.now + min(job.run, job.estimate)
        self.held.append(h)
        o = self.outcome[job.sequence]
        if o.first_start is None:
            o.first_start = self.now
        o.final_start = self.now
        o.host = self.hosts[host].name
        self.note("start", job, host)

    def start_trial(self, job, host, preempted, quantum, first_memory, quantum_known):
        idle = self.free(host)
        assert first_memory <= self.free_memory(host)
        self.waiting.remove(job)
        g = Held(job, host, self.now, first_memory)
        g.is_trial = True
        g.own = min(job.procs, idle)  # idle processors first.
        # READING: what is "its quantum's end" for a trial run with an estimate below the quantum:
        # (a) start + quantum, literally ("full"); (b) start + min(quantum, estimate), since it is
        # killed there ("estimate").  Chosen: (a).
        if quantum_known == "full":
            g.quantum_end = self.now + quantum
        else:
            g.quantum_end = self.now + min(quantum, job.estimate)
        # READING: a job that uses more memory than the initial allocation and has run time 0: (a)
        # the memory ends the quantum; (b) it is done.  Chosen: (a), the memory test comes first.
        # READING: used memory above the request but the request below 1 GiB: (a) literally above
        # the initial allocation, so it ends the quantum (and the later normal run is not hurt).
        # (b) used memory is taken as at most the request.  Chosen: (a).
        if job.used_memory > first_memory:
            g.end = self.now
        else:
            g.end = self.now + min(job.run, job.estimate, quantum)
        for v in preempted:
            assert not v.is_trial and v.suspended_at is None
            v.executed += self.now - v.start
            v.suspended_at = self.now
            v.end = None
            v.by = g
            g.preempted.append(v)
            self.note("suspend", v.job, host)
        self.held.append(g)
        o = self.outcome[job.sequence]
        if o.first_start is None:
            o.first_start = self.now
        o.final_start = self.now
        o.host = self.hosts[host].name
        o.quantum = True
        self.note("trial", job, host)

    def finish(self, h, quantum):
        """A job or a trial run ends.  Returns True if the job goes back to the queue."""
        self.held.remove(h)
        job = h.job
        again = False
        if h.is_trial:
            # READING: a trial run that takes exactly the quantum: done (run <= 60 s).  A trial run
            # that reaches its estimate within the quantum is killed there, hence done.
            if job.used_memory > h.memory or min(job.run, job.estimate) > quantum:
                again = True
                self.discarded[job.sequence] += self.now - h.start
        if again:
            self.note("leave", job, h.host)
            self.waiting.append(job)
        else:
            self.note("end", job, h.host)
            self.outcome[job.sequence].end = self.now
        for v in h.preempted:
            self.outcome[v.job.sequence].suspensions.append((v.suspended_at, self.now))
            v.suspended_at = None
            v.by = None
            v.start = self.now
            v.end = self.now + min(v.job.run, v.job.estimate) - v.executed
            self.note("resume", v.job, v.host)
        return again


# ----------------------------------------------------------------------------------------------------------------
# 3.3


class Reservation:
    def __init__(self, job, host, time):
        self.job = job
        self.host = host
        self.time = time


class PriorityFamily:
    def __init__(self, machine, kind, weights, depth, preempted_end):
        self.m = machine
        self.kind = kind
        self.weights = weights
        self.depth = depth
        self.preempted_end = preempted_end
        self.reservations = []
        self.bypassed = {}
        for sequence in machine.outcome:
            self.bypassed[sequence] = 0

    def priority(self, job):
        w = self.m.now - job.submit
        r = max(job.estimate, 60 * SECOND)
        # READING: mem_MB: (a) bytes / 2^20 (336 * 1024 / 960 = 358.4); (b) bytes / 10^6.  Chosen:
        # (a).  The six terms are added from the left in doubles, terms of weight 0 included (they
        # add 0.0).
        megabytes = job.memory / MIB
        weight = self.weights
        return (
            weight.get("wait", 0) * (w / HOUR)
            + weight.get("slowdown", 0) * ((w + r) / r)
            + weight.get("procs", 0) * job.procs
            + weight.get("memory", 0) * (megabytes / 358.4)
            + weight.get("pe", 0) * max(job.procs, megabytes / 358.4)
            + weight.get("bypass", 0) * self.bypassed[job.sequence]
        )

    def expected_end(self, h):
        now = self.m.now
        if h.is_trial:
            return h.quantum_end
        if h.suspended_at is None:
            return h.start + h.job.estimate - h.executed
        # READING: the "own expected end" of a preempted job while it is suspended: (a) the end of
        # the quantum plus what is left of its estimate ("shifted").  (b) the end it had before it
        # was suspended, and one second from now once that is past ("unshifted").  Chosen: (a).
        if self.preempted_end == "shifted":
            return h.by.quantum_end + h.job.estimate - h.executed
        end = h.suspended_at + h.job.estimate - h.executed
        if end <= now:
            end = now + SECOND
        return end

    def holds(self, host, without):
        """(from, until, procs, memory) of everything on the host, apart from the reservation of the
        job `without`."""
        now = self.m.now
        found = []
        for h in self.m.held:
            if h.host == host:
                until = self.expected_end(h)
                if until > now:  # a running job of zero estimate counts as gone
                    found.append((now, until, h.own, h.memory))
        for r in self.reservations:
            if r.host == host and r.job is not without:
                found.append(
                    (r.time, r.time + max(r.job.estimate, SECOND), r.job.procs, r.job.memory)
                )
        return found

    def fits(self, job, host, time, duration):
        """Does the job fit with everything on the host during [time, time + duration)?"""
        if duration == 0:
            return True
        holds = self.holds(host, job)
        instants = [time]
        for hold in holds:
            if time < hold[0] < time + duration:
                instants.append(hold[0])
        for instant in instants:
            procs = job.procs
            memory = job.memory
            for start, until, p, mem in holds:
                if start <= instant < until:
                    procs += p
                    memory += mem
            if procs > self.m.hosts[host].cpus or memory > self.m.hosts[host].memory:
                return False
        return True

    def can_start(self, job, host):
        # READING: "a running job of zero estimate counts as gone": (a) in profiles only, a start
        # needs processors and memory that are really free, and "free now" counts it as holding.
        # (b) also in start tests and "free now", so that a job may start on top of it.  Chosen:
        # (a). READING: a start with estimate 0 tests the empty interval [now, now): (a) no
        # reservation can forbid it; (b) it is tested at the instant.  Chosen: (a) (literal
        # estimate, half-open).
        return self.m.fits_now(job, host) and self.fits(job, host, self.m.now, job.estimate)

    def earliest(self, job, host):
        if not self.m.fits_empty(job, host):
            return None
        candidates = [self.m.now]
        for hold in self.holds(host, job):
            if hold[1] > self.m.now:
                candidates.append(hold[1])
        for time in sorted(candidates):
            if self.fits(job, host, time, max(job.estimate, SECOND)):
                return time
        raise AssertionError("no earliest start")

    def best_reservation(self, job):
        best = None
        for host in range(len(self.m.hosts)):
            time = self.earliest(job, host)
            if time is not None:
                key = (time, self.m.free(host), host)
                if best is None or key < best:
                    best = key
        return best

    def best_start(self, job):
        best = None
        for host in range(len(self.m.hosts)):
            if self.can_start(job, host):
                key = (self.m.free(host), host)
                if best is None or key < best:
                    best = key
        return best

    def order(self):
        keyed = []
        for job in self.m.waiting:
            if self.kind == "priority":
                keyed.append(((-self.priority(job), job.sequence), job))
            elif self.kind == "fcfs":
                # READING: equal submit times: by sequence (3.7.1), which is also the order of
                # (submit, id).
                keyed.append(((job.submit, job.sequence), job))
            else:
                keyed.append(((job.estimate, job.sequence), job))
        keyed.sort(key=lambda pair: pair[0])
        rest = [pair[1] for pair in keyed]
        if self.kind != "sjf":
            return rest
        holders = [r.job for r in self.reservations if r.job in rest]
        return holders + [job for job in rest if job not in holders]

    def reservation_of(self, job):
        for r in self.reservations:
            if r.job is job:
                return r
        return None

    def run_pass(self):
        now = self.m.now
        if self.kind != "sjf":
            self.reservations = []  # forgotten after each pass
        order = self.order()
        still = []  # the jobs of the order that were seen and still wait
        for job in order:
            # READING (sjf, several holders): while one holder is tried, (a) the reservations of all
            # the other holders bind it, older and younger; (b) only the older ones.  Chosen: (a).
            # Each holder is tried and moved before the next is tried.
            start = self.best_start(job)
            mine = self.reservation_of(job)
            if start is not None:
                if mine is not None:
                    self.reservations.remove(mine)
                self.m.start(job, start[1])
                # READING: a trial run is not waiting, so it gains no bypass, and the start of a
                # quantum bypasses no job ("when the pass starts a job"); a job keeps its bypasses
                # over its quantum.
                for earlier in still:
                    self.bypassed[earlier.sequence] += 1
                continue
            still.append(job)
            if mine is not None:
                # READING (sjf inside a wrapper): a kept reservation that a quantum made impossible:
                # (a) shifts to the earliest time on its own host, and leaves that host only for a
                # strictly earlier time.  (b) is taken anew over all hosts; (c) keeps its time
                # though impossible.  Chosen: (a) ("all reservations shift").  Cannot occur without
                # a wrapper.
                if mine.time < now or not self.fits(
                    job, mine.host, mine.time, max(job.estimate, SECOND)
                ):
                    mine.time = self.earliest(job, mine.host)
                best = self.best_reservation(job)
                if best[0] < mine.time:
                    mine.time = best[0]
                    mine.host = best[2]
            elif self.depth is None or len(self.reservations) < self.depth:
                # READING: a job that fits on no empty host: (a) gets no reservation and uses none
                # of the D; (b) uses one. Chosen: (a).
                best = self.best_reservation(job)
                if best is not None:
                    self.reservations.append(Reservation(job, best[2], best[0]))


# ----------------------------------------------------------------------------------------------------------------
# 3.4


class Quanta:
    def __init__(self, machine, inner, kind, quantum, initial_memory, protection, options):
        self.m = machine
        self.inner = inner
        self.kind = kind
        self.quantum = quantum
        self.initial_memory = initial_memory
        self.protection = protection
        self.options = options

    def give(self, job, host, preempted):
        first_memory = min(job.memory, self.initial_memory)
        self.m.start_trial(
            job, host, preempted, self.quantum, first_memory, self.options["quantum_end"]
        )
        # READING (sjf): the reservation of a job that gets a trial run: (a) is gone, the quantum is
        # a start and the inner policy sees the trial run as running ("drop").  (b) stays through
        # the quantum and after it ("keep"); (c) is gone if any pass happens during the quantum
        # ("lazy").  Chosen: (a).
        if self.options["trial_reservation"] == "drop":
            mine = self.inner.reservation_of(job)
            if mine is not None:
                self.inner.reservations.remove(mine)

    def run_pass(self, arrived):
        # a kept reservation goes when its job is done inside the quantum
        self.inner.reservations = [
            r for r in self.inner.reservations if self.m.outcome[r.job.sequence].end is None
        ]
        if self.options["trial_reservation"] == "lazy":
            self.inner.reservations = [
                r for r in self.inner.reservations if r.job in self.m.waiting
            ]
        self.inner.run_pass()
        if self.kind == "immediate":
            for job in arrived:
                if job in self.m.waiting:
                    self.try_immediate(job)
        else:
            for job in sorted(self.m.waiting, key=lambda j: j.sequence):
                if not self.m.outcome[job.sequence].quantum:
                    self.try_soon(job)

    def slowdown(self, h):
        executed = h.executed + self.m.now - h.start
        # READING: "all executed time" of a preempted job that had a quantum of its own which was
        # discarded: (a) includes that quantum; (b) does not.  Chosen: (a), by the word "all".
        if self.options["slowdown_counts_quantum"]:
            executed += self.m.discarded[h.job.sequence]
        if executed == 0:
            return float("inf")  # only with protection 0
        return (self.m.now - h.job.submit) / executed

    def try_immediate(self, job):
        # READING: the host of a quantum needs (a) the initial memory and enough processors only;
        # (b) must also be able to hold the whole request when empty.  Chosen: (a). READING: a
        # quantum that ends at its first instant (memory): (a) its end is an event of the next
        # round, later arrivals of this round see it as running.  (b) it ends before the next
        # arrival tries.  Chosen: (a) ("another round follows").
        best = None
        for host in range(len(self.m.hosts)):
            if job.procs > self.m.hosts[host].cpus:
                continue
            if min(job.memory, self.initial_memory) > self.m.free_memory(host):
                continue
            # READING: a trial run is never preempted, whatever the protection (alternative: like
            # any running job).
            eligible = []
            for h in self.m.held:
                if h.host == host and not h.is_trial and h.suspended_at is None:
                    if self.m.now - h.start >= self.protection:
                        eligible.append(h)
            # READING: the slowdowns are compared as doubles, (now - submit) / executed over integer
            # times.
            eligible.sort(key=lambda h: (self.slowdown(h), h.job.sequence))
            got = self.m.free(host)
            preempted = []
            for h in eligible:
                if got >= job.procs:
                    break
                preempted.append(h)
                got += h.job.procs
            if got < job.procs:
                continue
            key = (got - job.procs, len(preempted), host)
            if best is None or key < best[0]:
                best = (key, host, preempted)
        if best is not None:
            self.give(job, best[1], best[2])

    def try_soon(self, job):
        # READING: the host of a soon quantum, when several are free enough: (a) fewest free
        # processors, then host order, as for immediate service ("fewest_free"); (b) the first in
        # host order ("first").  Chosen: (a).
        best = None
        for host in range(len(self.m.hosts)):
            free = self.m.free(host)
            if job.procs <= free and min(job.memory, self.initial_memory) <= self.m.free_memory(
                host
            ):
                if self.options["soon_host"] == "fewest_free":
                    key = (free, host)
                else:
                    key = (0, host)
                if best is None or key < best:
                    best = key
        if best is not None:
            self.give(job, best[1], [])


# ----------------------------------------------------------------------------------------------------------------
# 3.2


class Lsf:
    def __init__(self, machine, time_classes, options):
        self.m = machine
        self.classes = {}
        for c in time_classes:
            self.classes[c.name] = c
        self.options = options
        self.special = []
        for _host in machine.hosts:
            self.special.append(None)
        self.sweep_order = sorted(
            range(len(machine.hosts)), key=lambda i: (len(machine.hosts[i].serves), i)
        )

    def system_limited(self, job):
        limit = self.classes[job.time_class].limit
        running = 0
        for h in self.m.held:
            if h.job.time_class == job.time_class:
                running += 1
        return limit is not None and running >= limit

    def host_limited(self, host, size):
        limit = self.m.hosts[host].limits.get(size)
        running = 0
        for h in self.m.held:
            if h.host == host and h.job.size_class == size:
                running += 1
        return limit is not None and running >= limit

    def fits(self, job, host):
        return self.m.fits_now(job, host) and not self.host_limited(host, job.size_class)

    def start(self, job, host):
        self.m.start(job, host)
        for i in range(len(self.special)):  # wherever it starts, its special is cleared
            if self.special[i] is job:
                self.special[i] = None

    def in_class_order(self, jobs):
        def key(job):
            first = 0 if self.classes[job.time_class].goes_first else 1
            return (first, job.submit, job.sequence)

        return sorted(jobs, key=key)

    def special_step(self, host):
        # READING: the step comes (a) after the round's arrivals, with the pass; (b) at the
        # completion.  No difference unless a reserve wait is negative.  Every end of a job counts
        # as a completion on its host, in every round of an instant. READING: a host that has a
        # special already: (a) no step; (b) another candidate that fits may start.  Chosen: (a).
        if self.special[host] is not None:
            return
        for size in self.m.hosts[host].serves:
            # READING: "runnable on A": (a) A serves its size class and it fits on A when empty; its
            # host limit is no obstacle to asking (then it becomes the special).  (b) also below the
            # host limit now.  Chosen: (a). READING: "highest priority for A (vst first etc.)": (a)
            # size classes in the host's order of preference, inside each vst first, then FCFS; (b)
            # vst of every size before all others.  Chosen: (a). READING: a candidate that fits now,
            # but not on its best host: it starts on A at once (literal).
            candidates = []
            for job in self.m.waiting:
                wait = self.classes[job.time_class].reserve_wait
                if job.size_class != size or wait is None or self.m.now - job.submit <= wait:
                    continue
                if (
                    job in self.special
                    or not self.m.fits_empty(job, host)
                    or self.system_limited(job)
                ):
                    continue
                candidates.append(job)
            if candidates:
                job = self.in_class_order(candidates)[0]
                if self.fits(job, host):
                    self.start(job, host)
                else:
                    self.special[host] = job
                return

    def schedule(self, host):
        started = False
        special = self.special[host]
        if special is not None:
            # READING: a special that is (now) at its system limit: (a) neither starts nor blocks:
            # the host goes on with other jobs and the special stays; (b) keeps the host idle (3.2
            # read literally; limited_special_blocks=True).  Chosen: (a), 3.7.10.
            if self.system_limited(special):
                if self.options["limited_special_blocks"]:
                    return started
            elif self.fits(special, host):
                self.start(special, host)
                started = True
            else:
                return started
        for size in self.m.hosts[host].serves:
            if self.host_limited(host, size):
                continue
            blocked = False
            waiting = [job for job in self.m.waiting if job.size_class == size]
            for job in self.in_class_order(waiting):
                if self.system_limited(job):
                    continue
                if self.m.fits_now(job, host):
                    self.start(job, host)
                    started = True
                    if self.host_limited(host, size):
                        break
                elif self.m.fits_empty(job, host):
                    # READING: a waiting job that holds a special on another host still blocks lower
                    # size classes here, like any waiting job (alternative: it does not).
                    blocked = True
            if blocked and not self.host_limited(host, size):
                return started
        return started

    def run_pass(self, completed_on):
        # READING: special steps of several hosts in one round: (a) in the order of the sweeps
        # ("sweep"); (b) in host order ("host").  Chosen: (a).  All steps come before the first
        # sweep.
        if self.options["special_order"] == "sweep":
            steps = self.sweep_order
        else:
            steps = range(len(self.m.hosts))
        for host in steps:
            if host in completed_on:
                self.special_step(host)
        while True:
            started = False
            for host in self.sweep_order:
                if self.schedule(host):
                    started = True
            if not started:
                return


# -------------------------------------------------------------------------------------------------------------
# driver


def simulate(jobs, hosts, time_classes, policy, **parameters):
    """policy: "lsf", "priority", "fcfs", "sjf", "immediate", "soon". weights: dict (see PRIORITY,
    LXF_W, LXF); depth: D, default 1, None = all; inner: "priority" | "fcfs" | "sjf", for the
    wrappers; quantum, initial_memory, protection; log: a list that receives (time, what, sequence,
    host name). Readings: preempted_end="shifted"|"unshifted", quantum_end="full"|"estimate",
    trial_reservation="drop"|"keep"|"lazy", soon_host="fewest_free"|"first",
    slowdown_counts_quantum=True|False, limited_special_blocks=False|True,
    special_order="sweep"|"host"."""
    p = {
        "weights": LXF_W,
        "depth": 1,
        "inner": "priority",
        "quantum": 60 * SECOND,
        "initial_memory": GIB,
        "protection": 600 * SECOND,
        "log": None,
        "preempted_end": "shifted",
        "quantum_end": "full",
        "trial_reservation": "drop",
        "soon_host": "fewest_free",
        "slowdown_counts_quantum": True,
        "limited_special_blocks": False,
        "special_order": "sweep",
    }
    for name in parameters:
        assert name in p, name
        p[name] = parameters[name]
    m = Machine(jobs, hosts, p["log"])
    lsf = None
    quanta = None
    family = None
    # READING: the priority family and its quanta: (a) know no size classes, host limits or system
    # limits (3.3: "procs, mem"); (b) obey the LSF limits.  Chosen: (a).
    if policy == "lsf":
        lsf = Lsf(m, time_classes, p)
    elif policy in ("immediate", "soon"):
        family = PriorityFamily(m, p["inner"], p["weights"], p["depth"], p["preempted_end"])
        quanta = Quanta(m, family, policy, p["quantum"], p["initial_memory"], p["protection"], p)
    else:
        assert policy in ("priority", "fcfs", "sjf"), policy
        family = PriorityFamily(m, policy, p["weights"], p["depth"], p["preempted_end"])

    coming = sorted(jobs, key=lambda j: (j.submit, j.sequence))
    while True:
        times = [h.end for h in m.held if h.end is not None]
        if coming:
            times.append(coming[0].submit)
        if not times:
            break
        m.now = min(times)
        # READING: the end of an unfinished quantum is a suspension (step 1) or a timer (step 2): no
        # difference, both precede the pass.
        ending = sorted([h for h in m.held if h.end == m.now], key=lambda h: h.job.sequence)
        completed_on = set()
        for h in ending:
            m.finish(h, p["quantum"])
            completed_on.add(h.host)
        arrived = []
        while coming and coming[0].submit == m.now:
            arrived.append(coming.pop(0))
        m.waiting.extend(arrived)
        arrived.sort(key=lambda j: j.sequence)
        # One pass per round; an event at the same instant makes the next turn of this loop another
        # round.
        if lsf is not None:
            lsf.run_pass(completed_on)
        elif quanta is not None:
            quanta.run_pass(arrived)
        else:
            family.run_pass()
    # READING: Outcome.quantum: the job had a quantum (alternative: it completed inside it).
    # final_start: its last start from scratch, a resumption is none; a job done inside its quantum
    # has final_start = first_start = the quantum's start.
    return m.outcome


# ---------------------------------------------------------------------------------------------------------
# self-check
