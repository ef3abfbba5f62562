"""qtoolkit (jobflow-remote): submits, polls, gets job information, cancels, through its PBSIO and
its local host."""

import getpass
import os
import time
from pathlib import Path

from qtoolkit.core.data_objects import CancelStatus, QResources, QState, SubmissionStatus
from qtoolkit.io.pbs import PBSIO
from qtoolkit.manager import QueueManager


def until(manager: QueueManager, job_id: str, states: set[QState]) -> None:
    deadline = time.monotonic() + 30
    while manager.get_job(job_id).state not in states:
        assert time.monotonic() < deadline, manager.get_job(job_id)
        time.sleep(0.05)


def main() -> None:
    manager = QueueManager(PBSIO())
    resources = QResources(
        queue_name="batch",
        job_name="work",
        nodes=1,
        processes_per_node=2,
        threads_per_process=1,
        time_limit=300,
        memory_per_thread=64,
        output_filepath="out.txt",
        error_filepath="err.txt",
    )
    submitted = manager.submit(
        "sleep 2; wc -l < $PBS_NODEFILE", options=resources, work_dir=os.getcwd()
    )
    assert submitted.status == SubmissionStatus.SUCCESSFUL, submitted
    job_id = submitted.job_id
    until(manager, job_id, {QState.RUNNING})
    job = manager.get_job(job_id)
    assert (job.name, job.username, job.job_id) == ("work", getpass.getuser(), job_id), job
    assert (job.info.nodes, job.info.cpus, job.info.time_limit) == (1, 2, 300), job.info
    assert [each.job_id for each in manager.get_jobs_list(user=getpass.getuser())] == [job_id]

    second = manager.submit(
        "sleep 100", options={"job_name": "long", "queue": "batch"}, work_dir=os.getcwd()
    ).job_id
    until(manager, second, {QState.RUNNING})
    assert {each.job_id for each in manager.get_jobs_list([job_id, second, "999.qbatch"])} <= {
        job_id,
        second,
    }
    assert manager.cancel(second).status == CancelStatus.SUCCESSFUL
    deadline = time.monotonic() + 30
    while manager.get_jobs_list([job_id, second]):
        assert time.monotonic() < deadline, manager.get_jobs_list([job_id, second])
        time.sleep(0.05)
    assert manager.get_job(job_id) is None, "a finished job is gone from qstat"
    assert manager.cancel("999.qbatch").status == CancelStatus.FAILED
    assert Path("out.txt").read_text().split()[-1] == "2"
    refused = manager.submit("true", options={"queue": "no-such-queue"}, work_dir=os.getcwd())
    assert refused.status == SubmissionStatus.FAILED, refused
    print("done", job_id, second, refused.stderr)


if __name__ == "__main__":
    main()
