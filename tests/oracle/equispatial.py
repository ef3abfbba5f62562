"""Oracle for EQspatial, the spatial equipartitioning of paper 004 (section 2.5), written from the
specification alone (docs/spec/papers.md 0, 3.4, 3.5, 3.7 item 11; docs/design.md "The meaning of
one instant").  Times: integer microseconds. Memory: bytes. Work: processors times microseconds.
Exact: integers and Fractions.  Plain and slow on purpose."""

from dataclasses import dataclass, field
from fractions import Fraction

SECOND = 1_000_000
HOUR = 3600 * SECOND
GIB = 1024**3


@dataclass(frozen=True)
class Host:
    cpus: int
    memory: int


@dataclass(frozen=True)
class Job:
    sequence: int
    submit: int
    procs: int
    memory: int
    estimate: int
    run: int
    used_memory: int

    @property
    def time(self):
        """Run time on all the processors asked for: a job that reaches its estimate is killed
        there."""
        return min(self.run, self.estimate)


@dataclass
class Outcome:
    start: object = None  # first start, that of a quantum included
    end: object = None
    pieces: list = field(
        default_factory=list
    )  # [begin, end, processors, host, kept], kept 0: a quantum that was thrown away


@dataclass
class Placed:
    """A job that holds memory on a host: in full, or for the trial run of its quantum."""

    job: Job
    host: int
    memory: int
    left: int  # work that is left.
    procs: int = 0  # now; 0: it stands still.
    executed: int = 0  # time with processors.
    # What it would have had, less what it had; None: nothing is owed (any more).
    debt: object = None
    share: int = 0  # its water-fill share.
    leaves: object = None  # of a trial run: when its quantum ends, unless its work is done before.
    is_long: bool = False  # it has executed for more than 50 hours, and is to have all.
    is_squeezing: bool = False  # a trial run for which the others shrank.


@dataclass
class Waiting:
    job: Job
    virtual: int = 0  # what it would have had
    share: int = 0  # its share where it would be


def water_fill(cpus, requests):
    """Shares of a host, requests in order of arrival: the greatest common level, the remainder one
    each in that order."""
    level = 0
    while level < max(requests, default=0) and sum(min(r, level + 1) for r in requests) <= cpus:
        level += 1
    shares = [min(r, level) for r in requests]
    left = cpus - sum(shares)
    for i, r in enumerate(requests):
        if left > 0 and shares[i] < r:
            shares[i] += 1
            left -= 1
    return shares


class EQspatial:
    def __init__(self, jobs, hosts, interval, is_over50, quantum, initial_memory, counts):
        self.hosts = hosts
        self.interval = interval
        self.is_over50 = is_over50
        self.quantum = quantum
        self.initial_memory = initial_memory
        self.counts = counts
        self.now = 0
        self.coming = sorted(jobs, key=lambda j: (j.submit, j.sequence))
        self.waiting = []
        self.placed = []
        self.outcome = {j.sequence: Outcome() for j in jobs}
        self.divided = [None] * len(hosts)  # the last repartition
        self.is_dirty = [False] * len(hosts)  # a job came or went since
        self.is_forced = [False] * len(hosts)  # a trial run came or went: at once

    def count(self, what, n=1):
        if n:
            self.counts[what] = self.counts.get(what, 0) + n

    # ------------------------------------------------------------------------------------------------
    # what there is

    def on(self, host):
        return sorted((p for p in self.placed if p.host == host), key=lambda p: p.job.sequence)

    def unallocated(self, host):
        return self.hosts[host].cpus - sum(p.procs for p in self.on(host))

    def free_memory(self, host):
        return self.hosts[host].memory - sum(p.memory for p in self.on(host))

    def shares(self, host, also=None):
        """The water-fill share of every job of a host by sequence, with another job there if `also`
        is one."""
        # READING: trial runs in the water-fill: (a) what a trial run has is not there for the
        # others to share; (b) it is one of the jobs that share.  Chosen: (a), for what a waiting
        # job would have had as for what a job has.
        cpus = self.hosts[host].cpus - sum(p.procs for p in self.on(host) if p.leaves is not None)
        sharing = [p.job for p in self.on(host) if p.leaves is None]
        if also is not None:
            sharing.append(also)
        sharing.sort(key=lambda j: j.sequence)
        return dict(
            zip(
                [j.sequence for j in sharing],
                water_fill(cpus, [j.procs for j in sharing]),
                strict=True,
            )
        )

    def ratio(self, host, job):
        size = self.hosts[host].cpus
        # READING: a trial run: (a) is one of "the jobs currently running on the host"; (b) is none.
        # Chosen: (a), literally.
        requested = job.procs + sum(p.job.procs for p in self.on(host))
        shares = self.shares(host)
        for p in self.on(host):
            if p.debt is not None:
                # READING: the extra processors of a job that cannot have all that it asks for
                # (now): (a) what it has above its share ("during the time that the job is given
                # extra processors").  (b) its request - its share.  Chosen: (a).
                size -= max(p.procs - shares[p.job.sequence], 0)
        return Fraction(size, requested)

    def widest(self, job, candidates):
        """Rule (b): the host with the greatest ratio, of equal ones the first; it must have the
        processors asked for."""
        best = None
        for host in candidates:
            if self.hosts[host].cpus >= job.procs:
                key = (-self.ratio(host, job), host)
                if best is None or key < best:
                    best = key
        return None if best is None else best[1]

    # ------------------------------------------------------------------------------------------------
    # time passes

    def next_instant(self):
        found = [self.coming[0].submit] if self.coming else []
        for p in self.placed:
            if p.procs > 0:
                found.append(self.now - (-max(p.left, 0) // p.procs))  # rounded up
            if p.leaves is not None:
                found.append(p.leaves)
            elif p.debt is not None and p.procs > p.share:
                found.append(self.now - (-p.debt // (p.procs - p.share)))
            if self.is_over50 and p.leaves is None and p.procs > 0 and p.executed < self.over50():
                found.append(self.now + self.over50() - p.executed)
        for host in range(len(self.hosts)):
            if self.is_dirty[host]:
                found.append(self.divided[host] + self.interval)
        return min(found) if found else None

    def over50(self):
        """Executed time from which a job is to have all."""
        # READING: "more than 50 hours" in whole microseconds: (a) from the first microsecond after;
        # (b) at 50 hours. Chosen: (a), literally.
        return 50 * HOUR + 1

    def advance(self, to):
        time = to - self.now
        for p in self.placed:
            p.left -= p.procs * time
            if p.procs > 0:
                p.executed += time
                self.piece(p, time)
            if p.debt is not None:
                p.debt += (p.share - p.procs) * time
        for w in self.waiting:
            w.virtual += w.share * time
        self.now = to

    def piece(self, p, time):
        pieces = self.outcome[p.job.sequence].pieces
        if time:
            last = pieces[-1] if pieces else None
            if last and last[1:] == [self.now, p.procs, p.host, 1]:
                last[1] += time
            else:
                pieces.append([self.now, self.now + time, p.procs, p.host, 1])

    # ------------------------------------------------------------------------------------------------
    # one instant

    def completions(self):
        for p in sorted(self.placed, key=lambda p: p.job.sequence):
            is_too_large = p.leaves is not None and p.job.used_memory > p.memory
            if p.procs > 0 and p.left <= 0 and not is_too_large:
                self.outcome[p.job.sequence].end = self.now
                self.count("quantum_done" if p.leaves is not None else "done")
                self.count("rounded_up", p.left < 0)
                self.leave(p)
            elif p.leaves is not None and p.leaves <= self.now:
                for piece in self.outcome[p.job.sequence].pieces:
                    piece[4] = 0
                self.count("quantum_memory" if is_too_large else "quantum_over")
                # READING: what it would have had: (a) while it waits, so from here on; (b) from its
                # arrival on, since what it did in the quantum is thrown away.  Chosen: (a),
                # literally.
                self.waiting.append(Waiting(p.job))
                self.leave(p)

    def leave(self, p):
        self.placed.remove(p)
        self.is_dirty[p.host] = True
        # READING: when a trial run for which others shrank ends, (a) they have their processors
        # back at once (3.4: "then resume them"), whatever the interval; (b) the interval counts.
        # Chosen: (a).
        if p.is_squeezing:
            self.is_forced[p.host] = True

    def timers(self):
        for p in self.placed:
            if p.leaves is None and p.debt is not None and p.debt <= 0:
                p.debt = None
                self.is_dirty[p.host] = True
                self.count("paid")
            if (
                self.is_over50
                and p.leaves is None
                and p.executed >= self.over50()
                and not p.is_long
            ):
                p.is_long = True
                self.is_dirty[p.host] = True
                self.count("over50")

    def instant(self):
        self.completions()
        self.timers()
        arrived = []
        while self.coming and self.coming[0].submit == self.now:
            arrived.append(Waiting(self.coming.pop(0)))
        self.waiting += arrived
        self.waiting.sort(key=lambda w: w.job.sequence)
        self.place()
        # READING: a quantum is tried once, on arrival, by the jobs of this round that are not
        # placed, in sequence.
        for w in arrived:
            if w in self.waiting:
                self.try_quantum(w)
        for host in range(len(self.hosts)):
            self.repartition(host)
        for host in range(len(self.hosts)):
            shares = self.shares(host)
            for p in self.on(host):
                p.share = shares.get(p.job.sequence, 0)
        for w in self.waiting:
            host = self.widest(w.job, range(len(self.hosts)))
            w.share = self.shares(host, w.job)[w.job.sequence]

    def place(self):
        is_blocked = False
        for w in list(self.waiting):
            job = w.job
            with_memory = [h for h in range(len(self.hosts)) if self.free_memory(h) >= job.memory]
            with_memory = [h for h in with_memory if self.hosts[h].cpus >= job.procs]
            idle = [h for h in with_memory if self.unallocated(h) >= job.procs]
            if idle:
                host = min(idle, key=lambda h: (self.unallocated(h), h))
                self.count("rule_a")
                self.count(
                    "rule_a_tie",
                    sum(self.unallocated(h) == self.unallocated(host) for h in idle) > 1,
                )
            elif with_memory:
                host = self.widest(job, with_memory)
                self.count("rule_b")
                self.count(
                    "rule_b_less_extra",
                    any(self.ratio(h, job) != self.plain_ratio(h, job) for h in with_memory),
                )
                if len(with_memory) > 1:
                    self.count("rule_b_choice")
                    self.count(
                        "rule_b_extra_decides",
                        host != max(with_memory, key=lambda h: (self.plain_ratio(h, job), -h)),
                    )
            else:
                is_blocked = True
                continue
            self.count("skipped_ahead", is_blocked)
            self.waiting.remove(w)
            p = Placed(
                job, host, job.memory, job.time * job.procs, min(job.procs, self.unallocated(host))
            )
            if w.virtual > 0:
                p.debt = w.virtual
                self.count("owed")
            self.placed.append(p)
            self.is_dirty[host] = True

    def plain_ratio(self, host, job):
        return Fraction(self.hosts[host].cpus, job.procs + sum(p.job.procs for p in self.on(host)))

    def try_quantum(self, w):
        job = w.job
        memory = min(job.memory, self.initial_memory)
        good = []
        for host in range(len(self.hosts)):
            trials = sum(p.job.procs for p in self.on(host) if p.leaves is not None)
            others = sum(p.leaves is None for p in self.on(host))
            if (
                self.free_memory(host) >= memory
                and trials + others + job.procs <= self.hosts[host].cpus
            ):
                good.append(host)
        if not good:
            self.count("no_quantum")
            return
        # READING: of several such hosts (a) the one that placement would take; (b) the one of 3.4.
        # Chosen: (a).
        idle = [h for h in good if self.unallocated(h) >= job.procs]
        if idle:
            host = min(idle, key=lambda h: (self.unallocated(h), h))
            self.count("quantum_on_idle")
        else:
            # READING: a job that has no others to preempt lets them shrink, at once, whatever the
            # interval.
            host = self.widest(job, good)
            self.is_forced[host] = True
            self.count("quantum_shrinks")
        self.waiting.remove(w)
        leaves = self.now if job.used_memory > memory else self.now + self.quantum
        work = job.time * job.procs
        p = Placed(job, host, memory, work, job.procs, leaves=leaves, is_squeezing=not idle)
        self.outcome[job.sequence].start = self.now
        self.placed.append(p)
        self.is_dirty[host] = True

    # ------------------------------------------------------------------------------------------------
    # repartition

    def repartition(self, host):
        here = self.on(host)
        if self.is_dirty[host]:
            last = self.divided[host]
            if last is None or self.now - last >= self.interval or self.is_forced[host]:
                self.count("divided")
                self.count(
                    "divided_by_force", not (last is None or self.now - last >= self.interval)
                )
                procs = self.partition(host)
                for p in here:
                    is_begun = self.outcome[p.job.sequence].start is not None
                    self.count(
                        "stopped",
                        is_begun and p.procs > 0 == procs[p.job.sequence] and p.memory > 0,
                    )
                    p.procs = procs[p.job.sequence]
                self.divided[host] = self.now
                self.is_dirty[host] = False
            else:
                self.count("divided_later")
        self.is_forced[host] = False
        assert self.unallocated(host) >= 0
        assert self.free_memory(host) >= 0
        for p in here:
            self.count("stands_still", p.procs == 0)
            if p.procs > 0 and self.outcome[p.job.sequence].start is None:
                self.outcome[p.job.sequence].start = self.now

    def partition(self, host):
        """Processors by sequence: first trial runs and jobs that are to have all they ask for, the
        others by water-filling."""
        procs = {}
        rest = self.hosts[host].cpus
        sharing = self.on(host)
        for p in list(sharing):
            if p.leaves is not None:
                procs[p.job.sequence] = p.job.procs
                rest -= p.job.procs
                sharing.remove(p)
        # READING: several jobs that are to have all: (a) they share equally what leaves one
        # processor to every other job, so that no favoured job has less than its share; (b) in
        # order of arrival.  Chosen: (a).  With more jobs than processors ("provided every other job
        # on the host keeps >= 1") no job has more than the others.
        favoured = [p for p in sharing if p.debt is not None or p.is_long]
        if rest >= len(sharing):
            sharing = [p for p in sharing if p not in favoured]
            all_but_one_each = rest - len(sharing)
            for p, most in zip(
                favoured, water_fill(all_but_one_each, [p.job.procs for p in favoured]), strict=True
            ):
                self.count("has_all" if most == p.job.procs else "has_not_all")
                self.count("favoured_share", len(favoured) > 1 and most < p.job.procs)
                procs[p.job.sequence] = most
                rest -= most
        shares = water_fill(rest, [p.job.procs for p in sharing])
        for p, share in zip(sharing, shares, strict=True):
            procs[p.job.sequence] = share
        return procs


def simulate(
    jobs, hosts, interval=0, is_over50=False, quantum=60 * SECOND, initial_memory=GIB, counts=None
):
    """Outcomes by sequence.  `counts`: a dict that receives how often each thing happened."""
    counts = {} if counts is None else counts
    machine = EQspatial(jobs, hosts, interval, is_over50, quantum, initial_memory, counts)
    while (instant := machine.next_instant()) is not None:
        machine.advance(instant)
        machine.instant()
    assert not machine.waiting
    assert not machine.placed
    audit(jobs, hosts, machine.outcome)
    return machine.outcome


def audit(jobs, hosts, outcome):
    """Work is conserved; no host gives more processors or memory than it has (memory: of what is
    kept)."""
    for job in jobs:
        o = outcome[job.sequence]
        done = sum((end - begin) * procs for begin, end, procs, host, kept in o.pieces if kept)
        last = o.pieces[-1][2] if o.pieces else 1
        assert (
            job.time * job.procs <= done < job.time * job.procs + last or done == 0 == job.time
        ), job
        assert len({host for _, _, _, host, kept in o.pieces if kept}) <= 1, job
    instants = {begin for o in outcome.values() for begin, *_ in o.pieces}
    for instant in instants:
        procs = [0] * len(hosts)
        for o in outcome.values():
            for begin, end, wide, host, _ in o.pieces:
                if begin <= instant < end:
                    procs[host] += wide
        assert all(p <= h.cpus for p, h in zip(procs, hosts, strict=True))
