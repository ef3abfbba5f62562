"""signac-flow (Torque): submits operations with slashes in their names, asks with ``qstat -fx -u``,
waits for them."""

import subprocess
import sys
import time
from pathlib import Path

import signac
from flow import FlowProject
from flow.environment import DefaultPBSEnvironment
from flow.scheduling.base import JobStatus, Scheduler


class Project(FlowProject):
    """Two operations; the second waits for what the first leaves."""


@Project.post.isfile("first.txt")
@Project.operation
def first(job):  # type: ignore[no-untyped-def]
    Path(job.fn("first.txt")).write_text(str(job.sp.number))


@Project.pre.isfile("first.txt")
@Project.post.isfile("second.txt")
@Project.operation(directives={"np": 2, "walltime": 0.1, "memory": 0.25})
def second(job):  # type: ignore[no-untyped-def]
    Path(job.fn("second.txt")).write_text(Path(job.fn("first.txt")).read_text() * 2)


def statuses(project: Project) -> list[JobStatus]:
    return [each.status() for each in project.scheduler_jobs(DefaultPBSEnvironment.get_scheduler())]


def wait(project: Project, name: str) -> None:
    deadline = time.monotonic() + 60
    while not all(Path(job.fn(name)).exists() for job in project):
        assert time.monotonic() < deadline, (name, statuses(project))
        time.sleep(0.1)


def main() -> None:
    Scheduler._dos_timeout = 0  # it asks every ten seconds at most
    signac.init_project()
    project = Project.get_project(environment=DefaultPBSEnvironment)
    assert statuses(project) == [], "an empty <Data> when there are no jobs"
    for number in range(3):
        project.open_job({"number": number}).init()
    submit = subprocess.run(
        ["qsub", "-h", "-N", "a/b"], check=True, input="true\n", text=True, stdout=subprocess.PIPE
    )
    assert statuses(project) == [JobStatus.held]
    subprocess.run(["qdel", submit.stdout.strip()], check=True)
    project.submit(names=["first"])
    listed = statuses(project)
    assert len(listed) >= 3
    assert all(
        each in (JobStatus.queued, JobStatus.active, JobStatus.inactive) for each in listed
    ), listed
    wait(project, "first.txt")
    project.submit(names=["second"])
    wait(project, "second.txt")
    found = sorted(Path(job.fn("second.txt")).read_text() for job in project)
    assert found == ["00", "11", "22"], found
    print("done", found)


if __name__ == "__main__":
    if len(sys.argv) > 1:  # in a job: the operations that its script names
        Project().main()
    else:
        main()
