"""Reads a recording of a real Slurm: submissions, actions, ends of jobs, and every pass with what it decided."""

from __future__ import annotations

import csv
import gzip
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.policies.slurm_oracle import site as sites


def read_text(path: Path) -> str:
    """The text of a file, or of the same file with .gz."""
    if path.exists():
        return path.read_text()
    packed = path.with_name(path.name + ".gz")
    return gzip.decompress(packed.read_bytes()).decode()


def instant(text: str) -> float:
    """An ISO time of the recording (UTC) in epoch seconds, rounded to milliseconds."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp(), 3)


@dataclass(frozen=True)
class Start:
    """A job that a pass started."""

    job: int
    nodes: str
    partition: str


@dataclass(frozen=True)
class Test:
    """A line of backfill: this entry of the queue is looked at, with this priority."""

    __test__ = False
    job: int
    priority: int
    partition: str
    reservation: str


@dataclass(frozen=True)
class Try:
    """A line of backfill: the job is tried from this instant on these nodes."""

    job: int
    start: int
    nodes: str


@dataclass(frozen=True)
class Plan:
    """A line of backfill: the planned start and end of a job on its nodes."""

    job: int
    start: int
    end: int
    nodes: str
    partition: str


@dataclass
class Pass:
    """One pass of the main scheduler ("quick", "full") or of backfill."""

    time: float
    kind: str
    starts: list[Start] = field(default_factory=list)
    tests: list[Test] = field(default_factory=list)
    tries: list[Try] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    map_lines: list[tuple[int, int, str]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    line: int = 0

    @property
    def second(self) -> int:
        """The whole second that Slurm calls now."""
        return int(self.time)


@dataclass
class Event:
    """Something that happened to a job or to the site between passes."""

    time: float
    kind: str
    job: int = 0
    text: str = ""
    value: int = 0
    line: int = 0


@dataclass
class Submission:
    """One line of submit.tsv. `job` is None if it was refused."""

    key: int
    offset: float
    before: float
    after: float
    job: int | None
    user: str
    command: str
    error: str


@dataclass
class Sample:
    """The output of one command at one instant."""

    time: float
    command: str
    lines: list[str]


@dataclass
class Recording:
    """One recording."""

    name: str
    folder: Path
    site: sites.Site
    zero: float
    submissions: list[Submission]
    actions: list[tuple[float, str, str]]
    passes: list[Pass]
    events: list[Event]
    rows: list[dict[str, str]]
    arrays: dict[int, tuple[int, int]]
    thread_start: float

    def samples(self, name: str) -> list[Sample]:
        """The samples of samples_NAME.txt."""
        result: list[Sample] = []
        for line in read_text(self.folder / f"samples_{name}.txt").splitlines():
            match = re.match(r"=== t=([\d.]+) off=\S+ \$ (.*)", line)
            if match:
                result.append(Sample(float(match[1]), match[2], []))
            elif result:
                result[-1].lines.append(line)
        return result


JOB = r"JobId=(\d+)(?:_(\d+|\*|\[[^\]]*\])(?:\((\d+)\))?)?"


def read_recording(folder: Path) -> Recording:
    """Reads one folder of recordings."""
    site = sites.read_site(folder)
    zero = float((folder / "t0").read_text())
    submissions = []
    with (folder / "submit.tsv").open() as handle:
        for row in csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE):
            submissions.append(
                Submission(
                    int(row["id"]),
                    float(row["offset"]),
                    float(row["t_before"]),
                    float(row["t_after"]),
                    int(row["jobid"]) if row["jobid"] else None,
                    row["user"],
                    row["command"],
                    row["stderr"] or "",
                )
            )
    actions = []
    for line in (folder / "actions.tsv").read_text().splitlines()[1:]:
        offset, user, command = line.split("\t")
        actions.append((zero + float(offset), user, command))
    recording = Recording(
        folder.name, folder, site, zero, submissions, actions, [], [], [], {}, 0.0
    )
    _read_decisions(recording)
    with (folder / "sacct_jobs_epoch.psv").open() as handle:
        recording.rows = list(csv.DictReader(handle, delimiter="|", quoting=csv.QUOTE_NONE))
    return recording


def _read_decisions(recording: Recording) -> None:
    """Splits decisions.log into passes and events."""
    current: Pass | None = None
    for number, line in enumerate(read_text(recording.folder / "decisions.log").splitlines()):
        match = re.match(r"\[([\dT:.-]+)\] (.*)", line)
        if not match:
            continue
        time, text = instant(match[1]), match[2]
        text = (
            text.removeprefix("sched/backfill: ")
            .removeprefix("debug:  ")
            .removeprefix("sched/backfill: ")
        )
        found = re.search(JOB, text)
        job = 0
        if found:
            job = int(found[3] or found[1])
            if found[3]:
                recording.arrays[job] = (int(found[1]), int(found[2]))
        if "scheduler plugin loaded" in text:
            recording.thread_start = time
        if text.startswith("sched: Running job scheduler"):
            current = Pass(time, "full" if "full queue" in text else "quick", line=number)
            recording.passes.append(current)
            continue
        if text.startswith("_attempt_backfill: beginning"):
            current = Pass(time, "backfill", line=number)
            recording.passes.append(current)
            continue
        if current is not None and _belongs(current, text, job):
            current.lines.append(text)
            continue
        _event(recording, time, text, job, number)
    recording.events.sort(key=lambda event: (event.time, event.line))


def _belongs(current: Pass, text: str, job: int) -> bool:
    """Adds a line to the pass it belongs to; False if it belongs to none."""
    if match := re.match(
        r"sched: Allocate " + JOB + r" NodeList=(\S+) #CPUs=(\d+) Partition=(\S+)", text
    ):
        current.starts.append(Start(job, match[4], match[6]))
    elif match := re.match(r"_start_job: Started " + JOB + r" in (\S+) on (\S+)", text):
        current.starts.append(Start(job, match[5], match[4]))
    elif match := re.match(
        r"_attempt_backfill: BACKFILL: test for "
        + JOB
        + r" Prio=(\d+) Partition=(\S+) Reservation=(\S+)",
        text,
    ):
        current.tests.append(Test(job, int(match[4]), match[5], match[6]))
    elif match := re.match(r"_dump_job_test: Test " + JOB + r" at (\S+) on (\S*)", text):
        current.tries.append(Try(job, int(instant(match[4])), match[5]))
    elif match := re.match(
        r"_dump_job_sched: "
        + JOB
        + r" to start at (\S+), end at (\S+) on nodes (\S+) in partition (\S+)",
        text,
    ):
        current.plans.append(
            Plan(job, int(instant(match[4])), int(instant(match[5])), match[6], match[7])
        )
    elif match := re.match(r"_dump_node_space_table: Begin:(\S+) End:(\S+) Nodes:(\S*) Lic", text):
        current.map_lines.append((int(instant(match[1])), int(instant(match[2])), match[3]))
    elif (
        re.match(
            r"_(attempt_backfill|dump|start_job|handle_planned)|RESERVATION: job_test_resv", text
        )
        or "per _failed_partition()" in text
    ):
        pass
    else:
        return False
    return True


EVENTS = [
    (r"_slurm_rpc_submit_batch_job: JobId=\d+ InitPrio=(\d+)", "submitted"),
    (r"_job_complete: \S+ WEXITSTATUS (\d+)", "exit"),
    (r"_job_complete: \S+ done", "ended"),
    (r"job_signal: 9 of running .* successful", "killed"),
    (r"job_signal: 9 of pending .* successful", "cancelled"),
    (r"Requeuing ", "requeued"),
    (r"Time limit exhausted for", "exhausted"),
    (r"setting (\d+) sec preemption grace time", "grace"),
    (r"preempted .* has been", "preempted"),
    (r"_preempt_job_dequeue: preempted .* had to be killed", "preempted"),
    (r"GANG: gang: suspending|gang: suspending", "suspended"),
    (r"GANG: gang: resuming|gang: resuming", "resumed"),
    (r"priority/multifactor: _decay_thread: PRIO: Decay factor over (\d+) seconds", "tick"),
    (r"priority/multifactor: _read_last_decay_ran", "plugin"),
    (r"sched: Created reservation=", "reservation"),
    (r"Purging vestigial reservation", "reservation-gone"),
    (r"_slurm_rpc_submit_batch_job: ", "refused"),
    (r"build_job_queue: Split out ", "split"),
    (r"sched: _hold_job_rec: hold on", "hold"),
    (r"sched: _release_job_rec: release hold on", "release"),
    (r"_update_job: (?:set|nice)", "update"),
]


def _event(recording: Recording, time: float, text: str, job: int, line: int) -> None:
    for pattern, kind in EVENTS:
        match = re.search(pattern, text)
        if match:
            value = int(match[1]) if match.groups() and match[1] else 0
            recording.events.append(Event(time, kind, job, text, value, line))
            return
