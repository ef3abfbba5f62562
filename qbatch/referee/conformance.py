"""The conformance workloads: small logs, each with one trap, with the correct schedules of the
policies.

Each is a text file in ``conformance/``, in the five-column format, with the expectations in its
comments::

    ; expect POLICY START ...        the correct starts in seconds, one per job; - for a job that cannot run
    ; wrong POLICY CODE START ...    the schedule of a trapped simulator, and the code of the referee's first breach;
                                     START+RUN if the job ran for another time than allowed

They also serve authors of other simulators: ``write_conformance`` writes them as text and as SWF.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from io import BytesIO
from pathlib import Path

import numpy as np

from qbatch.model.errors import OutputError
from qbatch.model.record import MICROSECONDS, Schedule, finished_run
from qbatch.results.output import whole_file


@dataclass(frozen=True, slots=True)
class ConformanceRun:
    """The start of a job and its run time, in seconds."""

    start: int
    run: int


@dataclass(frozen=True, slots=True)
class ConformanceJob:
    """A row of a conformance workload, in seconds; an estimate of 0 means none."""

    number: int
    submit: int
    run: int
    procs: int
    estimate: int

    @property
    def run_allowed(self) -> int:
        """The run time of the job if it is killed at its estimate."""
        return min(self.run, self.estimate) if self.estimate > 0 else self.run


@dataclass(frozen=True, slots=True)
class Wrong:
    """A wrong schedule and the code of the first breach in it."""

    policy: str
    code: str
    runs: tuple[ConformanceRun | None, ...]


@dataclass(frozen=True, slots=True)
class Conformance:
    """One conformance workload: its trap, its jobs, the correct schedules by policy, the wrong
    ones."""

    name: str
    trap: str
    about: str
    procs: int
    jobs: tuple[ConformanceJob, ...]
    expected: dict[str, tuple[ConformanceRun | None, ...]]
    wrong: tuple[Wrong, ...]
    text: str

    def finished(self, runs: Sequence[ConformanceRun | None]) -> Schedule:
        """Return a schedule of these jobs for the referee; None for a job that did not run."""
        pairs = [(job, run) for job, run in zip(self.jobs, runs, strict=True) if run is not None]

        def column(
            values: list[int], scale: int = MICROSECONDS
        ) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
            return np.array(values, np.int64) * scale

        start, run = column([run.start for _, run in pairs]), column([run.run for _, run in pairs])
        return finished_run(
            "",
            name=self.name,
            procs_total=self.procs,
            number=column([job.number for job, _ in pairs], 1),
            submit=column([job.submit for job, _ in pairs]),
            start=start,
            end=start + run,
            run=run,
            procs=column([job.procs for job, _ in pairs], 1),
            estimate=column([job.estimate or job.run for job, _ in pairs]),
        )

    def swf(self, runs: Sequence[ConformanceRun | None] | None = None, *notes: str) -> bytes:
        """Return the workload as SWF; with ``runs`` the schedule: waits, run times, allocated
        processors, status."""
        from qbatch.workloads import Header, write_log

        columns: dict[str, list[int]] = {
            "job": [job.number for job in self.jobs],
            "submit": [job.submit for job in self.jobs],
            "run": [job.run for job in self.jobs],
            "procs_requested": [job.procs for job in self.jobs],
            "time_requested": [job.estimate or -1 for job in self.jobs],
        }
        if runs is not None:
            pairs = list(zip(self.jobs, runs, strict=True))
            columns["wait"] = [run.start - job.submit if run else -1 for job, run in pairs]
            columns["run"] = [run.run if run else -1 for _, run in pairs]
            columns["procs_allocated"] = [job.procs if run else -1 for job, run in pairs]
            columns["status"] = [
                (5 if run.run < job.run else 1) if run else 5 for job, run in pairs
            ]
        lines = [
            "; Version: 2.2",
            f"; MaxProcs: {self.procs}",
            f"; Note: qbatch conformance workload {self.name}",
        ]
        lines += [f"; Note: {note}" for note in (self.trap, *notes)]
        out = BytesIO()
        write_log(
            out,
            Header(lines=tuple(lines)),
            {name: np.array(column) for name, column in columns.items()},
        )
        return out.getvalue()


@cache
def conformance_workloads() -> tuple[Conformance, ...]:
    """Return the conformance workloads, by name."""
    folder = resources.files("qbatch.referee") / "conformance"
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".txt")),
        key=lambda entry: entry.name,
    )
    return tuple(
        _parse(entry.name.removesuffix(".txt"), entry.read_text(encoding="utf-8"))
        for entry in files
    )


def _parse(name: str, text: str) -> Conformance:
    jobs: list[ConformanceJob] = []
    said: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.startswith(";"):
            submit, run, procs, estimate = map(int, line.split())
            jobs.append(ConformanceJob(len(jobs) + 1, submit, run, procs, estimate))
        else:
            word, _, rest = line[1:].strip().partition(" ")
            said.setdefault(word.rstrip(":"), []).append(rest)
    trap, about, procs = said["trap"][0], " ".join(said["about"]), int(said["MaxProcs"][0])
    expected = {policy: _runs(jobs, starts) for policy, *starts in map(str.split, said["expect"])}
    wrong = [
        Wrong(policy, code, _runs(jobs, starts))
        for policy, code, *starts in map(str.split, said["wrong"])
    ]
    return Conformance(name, trap, about, procs, tuple(jobs), expected, tuple(wrong), text)


def _runs(
    jobs: Sequence[ConformanceJob], words: Sequence[str]
) -> tuple[ConformanceRun | None, ...]:
    runs: list[ConformanceRun | None] = []
    for job, word in zip(jobs, words, strict=True):
        start, _, run = word.partition("+")
        runs.append(
            None
            if word == "-"
            else ConformanceRun(int(start), int(run) if run else job.run_allowed)
        )
    return tuple(runs)


_README = """\
Conformance workloads for batch schedulers and their simulators
================================================================

Each NAME.txt is a workload of a few jobs with one trap; NAME.swf is the same in the Standard Workload Format 2.2.
Run your scheduler on it, on MaxProcs processors, and compare the starts with expected.csv, or let
qbatch judge the schedule that it wrote (SWF with waits, or CSV with job_id,submit,start,end,procs,estimate):

    qbatch verify YOUR-SCHEDULE.swf --policy easy

Exit code 0: no breach; 1: a breach, named with its instant and its jobs; 3: unreadable.

The text format: one job per line, "submit run procs estimate", seconds, jobs numbered from 1; an estimate of 0 means none
(the run time counts). Comments begin with ";":

    ; trap: its subject                       ; about: the reasons for the right and the wrong schedule
    ; expect POLICY START ...               the right starts, one per job; "-" for a job that can never run
    ; wrong POLICY CODE START[+RUN] ...     a wrong schedule, and the code of the first breach in it

right/ holds the right schedules in SWF, wrong/ the wrong ones: "qbatch verify" accepts the right ones and rejects the others.

The rules: a job that reaches its estimate is killed there. At one instant, first jobs end, then jobs arrive (in
order of job number), then one pass follows; if a job of no length started, another round follows.
Reservations are half-open [start, start + estimate). EASY: the shadow time is the earliest instant at which the
head fits by the estimates of the running jobs. Every job that ends exactly then counts toward the extra processors.
The rest of the queue is scanned once, in order; a job that starts and does not end by the shadow time consumes
extra processors.
Conservative: each job gets the earliest reservation (max(estimate, 1 s) long) on arrival. When jobs end before their
estimate, each waiting job is removed and reinserted at its earliest start, in order of arrival (conservative), or
in order of planned start (conservative:compress=start). No job starts after its promised start.

"""


def write_conformance(directory: str | Path) -> int:
    """Write the set for authors of other simulators, and return the number of workloads.

    A missing directory is created; files with other names in it are left alone.

    Raises:
        OutputError: the directory cannot be written.
    """
    target = Path(directory)
    workloads = conformance_workloads()
    width = max(len(each.name) for each in workloads)
    listed = "".join(f"{each.name:<{width}}  {each.trap}\n" for each in workloads)
    files = {"README.txt": (_README + listed).encode()}
    table = ["workload,policy,job_id,start"]
    for each in workloads:
        files[f"{each.name}.txt"] = each.text.encode()
        files[f"{each.name}.swf"] = each.swf()
        for policy, runs in each.expected.items():
            files[f"right/{_file_name(each.name, policy)}"] = each.swf(
                runs, f"the right schedule of {policy}"
            )
            starts = ["" if run is None else str(run.start) for run in runs]
            table += [
                f"{each.name},{policy},{job.number},{at}"
                for job, at in zip(each.jobs, starts, strict=True)
            ]
        for place, wrong in enumerate(each.wrong, 1):
            note = f"a wrong schedule of {wrong.policy}: {wrong.code}"
            files[f"wrong/{_file_name(each.name, wrong.policy, str(place), wrong.code)}"] = (
                each.swf(wrong.runs, note)
            )
    files["expected.csv"] = ("\n".join(table) + "\n").encode()
    try:
        for folder in (target, target / "right", target / "wrong"):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{directory}: cannot be created as a directory ({error.strerror or error})"
        ) from error
    for name, content in files.items():
        with whole_file(target / name) as out:
            out.write(content)
    return len(workloads)


def _file_name(*parts: str) -> str:
    return ".".join(part.replace(":", "-").replace("=", "-") for part in parts) + ".swf"
