"""Runs a recording again, pass by pass, and counts what is equal.

The instants of passes, submissions, actions of the administrator and real ends are input. What each pass decides is
the simulator's.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from tests.policies.slurm_oracle import (
    arrays,
    dependencies,
    passes,
    preemption,
    priority,
    refusals,
    requests,
    reservations,
)
from tests.policies.slurm_oracle.recording import Event, Pass, Recording, Sample, instant
from tests.policies.slurm_oracle.world import (
    COMPLETING,
    DONE,
    PENDING,
    RUNNING,
    SUSPENDED,
    Job,
    World,
)

CLEANING = 0.008
SOON = 0.1
ESTIMATE = "sched/builtin estimates starts"
AFTER_SAMPLE = 0.003


@dataclass
class Count:
    """So many equal, of so many."""

    equal: int = 0
    total: int = 0
    different: list[str] = field(default_factory=list)

    def add(self, same: bool, text: str) -> None:
        """Counts one comparison."""
        self.total += 1
        if same:
            self.equal += 1
        else:
            self.different.append(text)


@dataclass
class Report:
    """The figures of one replay."""

    starts: Count = field(default_factory=Count)
    start_nodes: Count = field(default_factory=Count)
    false_starts: list[str] = field(default_factory=list)
    tests: Count = field(default_factory=Count)
    tries: Count = field(default_factory=Count)
    plan_starts: Count = field(default_factory=Count)
    plan_ends: Count = field(default_factory=Count)
    plan_nodes: Count = field(default_factory=Count)
    maps: Count = field(default_factory=Count)
    first_priorities: Count = field(default_factory=Count)
    sprio: Count = field(default_factory=Count)
    sshare: Count = field(default_factory=Count)
    refusals: Count = field(default_factory=Count)
    preemptions: Count = field(default_factory=Count)
    reasons: Count = field(default_factory=Count)
    squeue_starts: Count = field(default_factory=Count)


class Replay:
    """One run over a recording."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.world = World(recording.site)
        self.report = Report()
        self.priorities = priority.Priorities(self.world)
        self.world.priorities = self.priorities
        self.commands = {sub.job: sub for sub in recording.submissions if sub.job is not None}
        self.world.task_numbers = {place: number for number, place in recording.arrays.items()}
        self.ends: dict[int, list[int]] = {}
        for row in recording.rows:
            if row["End"].isdigit():
                self.ends.setdefault(int(row["JobIDRaw"]), []).append(int(row["End"]))

    def run(self) -> Report:
        """Goes through all events and passes in order of time."""
        timeline: list[tuple[float, int, Event | Pass | Sample | str]] = []
        timeline.extend((event.time, event.line, event) for event in self.recording.events)
        timeline.extend((item.time, item.line, item) for item in self.recording.passes)
        timeline.extend(
            (sample.time + AFTER_SAMPLE, 10**9, sample) for sample in self.recording.samples("prio")
        )
        timeline.extend(
            (sample.time + AFTER_SAMPLE, 10**9, sample)
            for sample in self.recording.samples("squeue")
        )
        timeline.extend(
            (time + AFTER_SAMPLE, 0, command) for time, _, command in self.recording.actions
        )
        timeline.extend((time, 0, ESTIMATE) for time in self.estimates())
        timeline.sort(key=lambda item: (item[0], item[1]))
        for time, _, item in timeline:
            self.world.now = time
            if isinstance(item, Pass):
                self.one_pass(item)
            elif item == ESTIMATE:
                passes.builtin_estimates(self.world)
            elif isinstance(item, str):
                self.act(item)
            elif isinstance(item, Sample):
                self.sample(item)
            else:
                self.event(item)
        return self.report

    def estimates(self) -> list[float]:
        """The instants at which sched/builtin estimates starts."""
        site = self.recording.site
        if site.setting("SchedulerType") != "sched/builtin":
            return []
        interval = int(site.scheduler.get("bf_interval", "30"))
        last = max(item.time for item in self.recording.passes)
        return [
            self.recording.thread_start + interval * turn
            for turn in range(1, int((last - self.recording.thread_start) / interval) + 1)
        ]

    def event(self, event: Event) -> None:
        """Applies one event of the log."""
        if event.kind == "submitted":
            self.submit(event)
        elif event.kind == "grace":
            self.preemption(event, "grace")
        elif event.kind == "preempted":
            self.preempted(event)
        elif event.kind == "requeued":
            self.requeued(event)
        elif event.kind in ("suspended", "resumed"):
            self.suspended(event)
        elif event.kind == "exit":
            if event.job in self.world.jobs:
                self.world.jobs[event.job].exit_code = event.value
        elif event.kind in ("hold", "release", "update"):
            self.administer(event)
        elif event.kind in ("ended", "exhausted", "killed"):
            self.end(event.job, event.time, event.kind)
        elif event.kind == "refused":
            self.refused(event)
        elif event.kind == "reservation":
            self.reserve(event)
        elif event.kind == "reservation-gone":
            self.unreserve(event)
        elif event.kind == "plugin":
            self.priorities.last_tick = int(event.time)
        elif event.kind == "tick":
            self.priorities.tick(int(event.time))
        elif event.kind == "cancelled" and event.job in self.world.jobs:
            self.world.jobs[event.job].state = DONE
            self.world.jobs[event.job].exit_code = 1

    def preemption(self, event: Event, kind: str) -> None:
        """Compares one step of a preemption with what the simulator decided in that second."""
        near = [
            item
            for item in self.world.preemptions
            if abs(item[0] - event.time) < 2 and item[1:] == (kind, event.job)
        ]
        self.report.preemptions.add(bool(near), f"{event}")

    def preempted(self, event: Event) -> None:
        """A preempted job is ended by the controller. After a grace time its instant is an input."""
        job = self.world.jobs[event.job]
        if not job.grace_until:
            self.preemption(event, "ended")
        if job.state in (RUNNING, SUSPENDED):
            job.state = COMPLETING
            job.released = math.inf
            self.priorities.ended(job, self.end_second(event.job, event.time))
        job.exit_code = 1

    def requeued(self, event: Event) -> None:
        """A requeued job waits again; it may start 121 s later (the life of its credential and one second)."""
        job = self.world.jobs[event.job]
        job.state = PENDING
        job.cores, job.memory, job.gpus, job.cpus = {}, {}, {}, 0
        job.grace_until = job.preempt_time = job.exit_code = 0
        job.begin = int(event.time) + preemption.REQUEUE_DELAY
        job.requeues += 1
        job.planned = 0
        self.priorities.requeued(job)

    def suspended(self, event: Event) -> None:
        """Gang scheduling suspends or resumes a job; a resumed job ends as much later as it was suspended."""
        job = self.world.jobs[event.job]
        if event.kind == "suspended":
            self.preemption(event, "suspended")
            if job.state == RUNNING:
                job.state = SUSPENDED
                job.suspended_at = int(event.time)
        elif job.state == SUSPENDED:
            job.state = RUNNING
            job.end += int(event.time) - job.suspended_at

    def administer(self, event: Event) -> None:
        """A hold, a release or a change of a job, as the log has it."""
        job = self.world.jobs[event.job]
        if event.kind == "update" and job.state == PENDING and not job.held:
            job.reason = "None"
        if event.kind == "hold":
            job.held, job.priority, job.reason = True, 0, "JobHeldUser"
        elif event.kind == "release":
            job.held, job.reason = False, "None"
            self.priorities.submitted(job)
        elif match := re.search(r"set priority to (\d+)", event.text):
            job.priority = int(match[1])
        elif match := re.search(r"nice changed from (\d+) to (\d+)", event.text):
            job.priority -= int(match[2]) - int(match[1])
        elif match := re.search(r"setting time_limit to (\d+)", event.text):
            if job.state == RUNNING:
                self.priorities.limit_changed(job, int(match[1]))
            job.limit = int(match[1])
            if job.state == RUNNING:
                job.end = job.start + job.limit * 60
        elif match := re.search(r"setting begin to (\S+)", event.text):
            job.begin = int(instant(match[1]))
        elif match := re.search(r"set max_run_tasks to (\d+)", event.text):
            job.task_limit = int(match[1])

    def act(self, command: str) -> None:
        """A command of the administrator that the log does not have."""
        if match := re.search(r"scontrol update nodename=(\S+) state=(\S+)", command):
            nodes = set(self.recording.site.node_indices(match[1]))
            if match[2] == "drain":
                self.world.closed |= nodes
            elif match[2] in ("resume", "idle"):
                self.world.closed -= nodes
        elif match := re.search(r"scontrol delete reservation(?:name)?=(\S+)", command):
            self.world.reservations.pop(match[1], None)
        elif match := re.search(r"scontrol top @?(\d+)", command):
            number = next(sub.job for sub in self.recording.submissions if sub.key == int(match[1]))
            self.top(self.world.jobs[number or 0])

    def top(self, job: Job) -> None:
        """scontrol top: the job gets the highest priority of its user's; the others lose as much in all."""
        others = [
            other
            for other in self.world.pending()
            if other is not job and other.request.user == job.request.user and other.priority
        ]
        others.sort(key=lambda other: -other.priority)
        if not others:
            return
        rise = max(others[0].priority - job.priority, 0)
        job.priority += rise
        for position, other in enumerate(others):
            part = rise // (len(others) - position)
            other.priority -= part
            rise -= part

    def refused(self, event: Event) -> None:
        """A submission that the real controller refused."""
        near = [
            sub
            for sub in self.recording.submissions
            if sub.job is None and sub.before <= event.time <= sub.after
        ]
        if not near:
            return
        submission = near[0]
        request = requests.derive(submission.command, submission.user, self.recording.site)
        mine, record = refusals.refusal(self.world, request, event.time)
        real = [
            text.removeprefix("sbatch: error: ").removeprefix("Batch job submission failed: ")
            for text in submission.error.split(" / ")
        ]
        self.report.refusals.add(mine == real, f"{submission.key} {real} {mine}")
        if record and not self.priorities.multifactor:
            self.priorities.next_basic(0)

    def reserve(self, event: Event) -> None:
        """A reservation was made: its nodes and times are taken from the log, its flags from the command."""
        found = re.search(
            r"reservation=(\S+) users=(\S+) nodes=(\S+) cores=(\d+) .* start=(\S+) end=(\S+)",
            event.text,
        )
        assert found, event.text
        name, users, names, count = found[1], found[2], found[3], int(found[4])
        command = next(
            text for _, _, text in self.recording.actions if f"reservationname={name} " in text
        )
        flags = re.search(r"flags=(\S+)", command)
        indices = frozenset(self.recording.site.node_indices(names))
        cores: dict[int, frozenset[int]] = {}
        if count < sum(self.recording.site.nodes[index].cpus for index in indices):
            share = count // len(indices)
            cores = {index: frozenset(range(share)) for index in indices}
        marks = set((flags[1] if flags else "").upper().split(",")) - {""}
        if "nodes=ALL" in command:
            marks.add("ALL_NODES")
        self.world.reservations[name] = reservations.Reservation(
            name,
            int(instant(found[5])),
            int(instant(found[6])),
            indices,
            frozenset(users.split(",")),
            frozenset(marks),
            cores,
        )

    def unreserve(self, event: Event) -> None:
        """A reservation is over: jobs that wait for it are held."""
        name = event.text.split()[-1]
        gone = self.world.reservations.pop(name, None)
        for job in self.world.pending():
            if (
                gone is not None
                and "MAINT" in gone.flags
                and job.reason.endswith("Reserved for maintenance")
            ):
                job.reason = "None"
            if job.reservation == name:
                job.held = True
                job.priority = 0
                job.reason = f"Reservation {name} was deleted"

    def submit(self, event: Event) -> None:
        """A new job."""
        submission = self.commands[event.job]
        request = requests.derive(submission.command, submission.user, self.recording.site)
        if event.job == submission.job:
            mine, _ = refusals.refusal(self.world, request, event.time)
            self.report.refusals.add(not mine, f"{submission.key} taken {mine}")
        self.world.last_sequence += 1
        job = Job(event.job, request, event.time, self.world.last_sequence)
        job.nice = request.nice
        job.limit = request.limit or 0
        if not job.limit:
            partition = self.recording.site.partitions[request.partitions[0]]
            job.limit = partition.default_time or 0
        job.reservation = request.reservation
        job.held = request.hold
        job.reason = "JobHeldUser" if request.hold else "None"
        job.accrues = event.time
        if request.begin:
            job.begin = dependencies.begin_second(request.begin, int(event.time))
        if request.array:
            job.array = event.job
            job.waiting_tasks, job.task_limit = arrays.tasks_of(request.array)
        self.world.jobs[event.job] = job
        self.priorities.submitted(job)
        if not request.array:
            passes.at_submission(self.world, job)
        self.report.first_priorities.add(job.priority == event.value, f"{event} {job.priority}")

    def end(self, number: int, time: float, kind: str = "ended") -> None:
        """A job ended; its cores are free at once, its nodes after they were cleaned up."""
        job = self.world.jobs.get(number)
        if job is None:
            return
        if kind == "exhausted":
            job.exit_code = 1
        if job.state == COMPLETING and job.released == math.inf:
            self.priorities.ended(job, self.end_second(number, time))
            job.released = self.cleaned(job, time)
        if job.state in (RUNNING, SUSPENDED):
            self.priorities.ended(job, self.end_second(number, time))
            job.state = COMPLETING
            job.released = self.cleaned(job, time)

    def end_second(self, number: int, time: float) -> int:
        """The whole second that Slurm gave the end of a job: the log line can be a few milliseconds later."""
        near = [end for end in self.ends.get(number, []) if abs(end - time) <= 2]
        return near[0] if near else int(time)

    def cleaned(self, job: Job, time: float) -> float:
        """The instant from which the nodes of an ended job can be used again: an input, since no rule gives it.

        It is 8 ms after the end. If a main pass soon after the end starts nothing on these nodes and a further one as
        soon does, the nodes were not yet clean at the first.
        """
        soon = [
            item
            for item in self.recording.passes
            if time < item.time < time + SOON and item.kind != "backfill"
        ]
        using = [
            item
            for item in soon
            if any(
                set(self.recording.site.node_indices(start.nodes)) & job.nodes
                for start in item.starts
            )
        ]
        if using and soon[0] is not using[0]:
            return using[0].time
        return min(time + CLEANING, using[0].time) if using else time + CLEANING

    def sample(self, sample: Sample) -> None:
        """Compares one output of sprio or sshare."""
        if sample.command == "sprio -l" and self.priorities.multifactor:
            for line in sample.lines[1:]:
                columns = line.split()
                job = self.world.jobs.get(int(columns[0].partition("_")[0]))
                mine = job.printed.get(columns[1]) if job else None
                for position, value in enumerate(columns[3:12]):
                    other = mine[position] if mine else None
                    self.report.sprio.add(other == value, f"{sample.time} {columns} {mine}")
        elif sample.command.startswith("squeue") and sample.lines:
            self.reasons(sample)
        elif sample.command.startswith("sshare") and self.priorities.multifactor:
            header = sample.lines[0].split("|")
            for line in sample.lines[1:]:
                row = dict(zip(header, line.split("|"), strict=True))
                item = self.recording.site.associations[
                    (row["Account"].strip(), row["User"] or None)
                ]
                mine_row = priority.share_row(self.priorities, item)
                for name, value in mine_row.items():
                    real = (
                        ",".join(row[name].split(",")[:5]) if name == "TRESRunMins" else row[name]
                    )
                    self.report.sshare.add(
                        real == value,
                        f"{sample.time} {row['Account']} {row['User']} {name} {real} {value}",
                    )

    def reasons(self, sample: Sample) -> None:
        """Compares the reasons of waiting jobs in one output of squeue."""
        header = sample.lines[0].split("|")
        for line in sample.lines[1:]:
            row = dict(zip(header, line.split("|"), strict=True))
            if row["STATE"] != "PENDING":
                continue
            number, _, task = row["JOBID"].partition("_")
            task = (re.findall(r"\d+", task) or [""])[0]
            job = self.world.jobs.get(
                self.world.task_numbers.get((int(number), int(task or "0")), int(number))
            )
            if job is None or (task and job.task != int(task)):
                job = self.world.jobs.get(int(number))
            mine = job.reason if job else None
            real_start = 0 if row["START_TIME"] == "N/A" else int(instant(row["START_TIME"]))
            my_start = shown_start(job, int(sample.time)) if job else -1
            self.report.squeue_starts.add(
                my_start == real_start,
                f"{sample.time} {row['JOBID']} {row['REASON']} {real_start} {my_start}",
            )
            self.report.reasons.add(
                mine == row["REASON"], f"{sample.time} {row['JOBID']} {row['REASON']} {mine}"
            )

    def one_pass(self, item: Pass) -> None:
        """One pass: decides, then compares."""
        if item.kind == "backfill":
            outcome = passes.backfill_pass(self.world)
        else:
            outcome = passes.main_pass(self.world, item.kind == "full")
        compare(item, outcome, self.report)


def shown_start(job: Job, now: int) -> int:
    """The start that squeue shows of a waiting job: its planned start or its begin time, never in the past."""
    if job.planned:
        return max(job.planned, now)
    return job.begin if job.begin > now else 0


def compare(item: Pass, outcome: passes.Outcome, report: Report) -> None:
    """Counts what a pass decided against what the real one did; what only the simulator did counts as different."""
    where = f"{item.time:.3f} {item.kind}"
    for count, more in (
        (report.tests, outcome.tests[len(item.tests) :]),
        (report.tries, outcome.tries[len(item.tries) :]),
        (report.plan_starts, outcome.plans[len(item.plans) :]),
        (report.maps, outcome.map_lines[len(item.map_lines) :]),
    ):
        for one_more in more:
            count.add(False, f"{where} only mine: {one_more}")
    mine = {start.job: start for start in outcome.starts}
    for start in item.starts:
        found = mine.pop(start.job, None)
        report.starts.add(
            found is not None and found.partition == start.partition, f"{where} {start} {found}"
        )
        report.start_nodes.add(
            found is not None and found.nodes == start.nodes, f"{where} {start} {found}"
        )
    report.false_starts.extend(f"{where} {start}" for start in mine.values())
    for position, test in enumerate(item.tests):
        other = outcome.tests[position] if position < len(outcome.tests) else None
        report.tests.add(other == test, f"{where} {test} {other}")
    for position, one in enumerate(item.tries):
        another = outcome.tries[position] if position < len(outcome.tries) else None
        report.tries.add(another == one, f"{where} {one} {another}")
    for position, plan in enumerate(item.plans):
        found_plan = outcome.plans[position] if position < len(outcome.plans) else None
        same_job = found_plan is not None and (found_plan.job, found_plan.partition) == (
            plan.job,
            plan.partition,
        )
        text = f"{where} {plan} {found_plan}"
        report.plan_starts.add(
            bool(same_job and found_plan and found_plan.start == plan.start), text
        )
        report.plan_ends.add(bool(same_job and found_plan and found_plan.end == plan.end), text)
        report.plan_nodes.add(
            bool(same_job and found_plan and found_plan.nodes == plan.nodes), text
        )
    for position, line in enumerate(item.map_lines):
        mine_line = outcome.map_lines[position] if position < len(outcome.map_lines) else None
        report.maps.add(mine_line == line, f"{where} {line} {mine_line}")


__all__ = ["PENDING", "Replay", "Report", "compare"]
