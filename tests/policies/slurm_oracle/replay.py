"""Runs a recording again, pass by pass, and counts what is equal.

The instants of passes, submissions, actions of the administrator and real ends are input. What each pass decides is
the simulator's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.policies.slurm_oracle import passes, requests
from tests.policies.slurm_oracle.recording import Event, Pass, Recording
from tests.policies.slurm_oracle.world import COMPLETING, DONE, PENDING, RUNNING, Job, World

CLEANING = 0.008
SOON = 0.1


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


class Replay:
    """One run over a recording."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.world = World(recording.site)
        self.report = Report()
        self.next_basic = 4294901759
        self.commands = {sub.job: sub for sub in recording.submissions if sub.job is not None}
        self.sequence = 0

    def run(self) -> Report:
        """Goes through all events and passes in order of time."""
        timeline: list[tuple[float, int, Event | Pass]] = []
        timeline.extend((event.time, 0, event) for event in self.recording.events)
        timeline.extend((item.time, 1, item) for item in self.recording.passes)
        timeline.sort(key=lambda item: (item[0], item[1]))
        for time, _, item in timeline:
            self.world.now = time
            if isinstance(item, Pass):
                self.one_pass(item)
            else:
                self.event(item)
        return self.report

    def event(self, event: Event) -> None:
        """Applies one event of the log."""
        if event.kind == "submitted":
            self.submit(event)
        elif event.kind in ("ended", "exhausted", "killed"):
            self.end(event.job, event.time)
        elif event.kind == "cancelled":
            if event.job in self.world.jobs:
                self.world.jobs[event.job].state = DONE

    def submit(self, event: Event) -> None:
        """A new job."""
        submission = self.commands[event.job]
        request = requests.derive(submission.command, submission.user, self.recording.site)
        self.sequence += 1
        job = Job(event.job, request, event.time, self.sequence)
        job.priority = event.value
        job.limit = request.limit or 0
        if not job.limit:
            partition = self.recording.site.partitions[request.partitions[0]]
            job.limit = partition.default_time or 0
        job.reservation = request.reservation
        job.held = request.hold
        self.world.jobs[event.job] = job

    def end(self, number: int, time: float) -> None:
        """A job ended; its cores are free at once, its nodes after they were cleaned up."""
        job = self.world.jobs[number]
        if job.state == RUNNING:
            job.state = COMPLETING
            job.released = self.cleaned(job, time)

    def cleaned(self, job: Job, time: float) -> float:
        """The instant from which the nodes of an ended job can be used again: an input, since no rule gives it.

        It is 8 ms after the end. If a main pass soon after the end starts nothing on these nodes and a further one as
        soon does, the nodes were not yet clean at the first.
        """
        soon = [item for item in self.recording.passes if time < item.time < time + SOON and item.kind != "backfill"]
        using = [
            item
            for item in soon
            if any(set(self.recording.site.node_indices(start.nodes)) & job.nodes for start in item.starts)
        ]
        if using and soon[0] is not using[0]:
            return using[0].time
        return min(time + CLEANING, using[0].time) if using else time + CLEANING

    def one_pass(self, item: Pass) -> None:
        """One pass: decides, then compares."""
        if item.kind == "backfill":
            outcome = passes.backfill_pass(self.world)
        else:
            outcome = passes.main_pass(self.world, item.kind == "full")
        compare(item, outcome, self.report)


def compare(item: Pass, outcome: passes.Outcome, report: Report) -> None:
    """Counts what a pass decided against what the real one decided."""
    where = f"{item.time:.3f} {item.kind}"
    mine = {start.job: start for start in outcome.starts}
    for start in item.starts:
        found = mine.pop(start.job, None)
        report.starts.add(found is not None and found.partition == start.partition, f"{where} {start} {found}")
        report.start_nodes.add(found is not None and found.nodes == start.nodes, f"{where} {start} {found}")
    report.false_starts.extend(f"{where} {start}" for start in mine.values())
    for position, test in enumerate(item.tests):
        other = outcome.tests[position] if position < len(outcome.tests) else None
        report.tests.add(other == test, f"{where} {test} {other}")
    for position, one in enumerate(item.tries):
        another = outcome.tries[position] if position < len(outcome.tries) else None
        report.tries.add(another == one, f"{where} {one} {another}")
    for position, plan in enumerate(item.plans):
        found_plan = outcome.plans[position] if position < len(outcome.plans) else None
        same_job = found_plan is not None and (found_plan.job, found_plan.partition) == (plan.job, plan.partition)
        text = f"{where} {plan} {found_plan}"
        report.plan_starts.add(bool(same_job and found_plan and found_plan.start == plan.start), text)
        report.plan_ends.add(bool(same_job and found_plan and found_plan.end == plan.end), text)
        report.plan_nodes.add(bool(same_job and found_plan and found_plan.nodes == plan.nodes), text)
    for position, line in enumerate(item.map_lines):
        mine_line = outcome.map_lines[position] if position < len(outcome.map_lines) else None
        report.maps.add(mine_line == line, f"{where} {line} {mine_line}")


__all__ = ["PENDING", "Replay", "Report", "compare"]
