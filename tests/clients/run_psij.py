"""PSI/J: jobs through its executor pbs or pbs_classic (the first argument): completed, failed,
canceled, listed."""

import getpass
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1


def spec(command: str, name: str) -> JobSpec:
    return JobSpec(
        executable="/bin/sh",
        arguments=["-c", command],
        name=name,
        directory=Path.cwd(),
        stdout_path=Path.cwd() / f"{name}.out",
        stderr_path=Path.cwd() / f"{name}.err",
        environment={"GREETING": "hello, world"},
        resources=ResourceSpecV1(node_count=1, processes_per_node=1),
        attributes=JobAttributes(duration=timedelta(minutes=5), queue_name="batch"),
    )


def main() -> None:
    executor = JobExecutor.get_instance(sys.argv[1])
    executor.config.initial_queue_polling_delay = 0.2
    executor.config.queue_polling_interval = 0.3
    good, bad, long = (
        Job(spec('echo "$GREETING" $PBS_QUEUE', "good")),
        Job(spec("exit 3", "bad")),
        Job(spec("sleep 100", "long")),
    )
    for job in (good, bad, long):
        executor.submit(job)
    # executor.list() asks for os.getlogin(), which there is only on a terminal: the same with the
    # user's name.
    listed = executor.parse_list_output(executor._run_command(["qstat", "-u", getpass.getuser()]))
    assert long.native_id in listed, (long.native_id, listed)
    status = good.wait(timeout=timedelta(seconds=40))
    assert status is not None, good.status
    assert status.state == JobState.COMPLETED, status
    assert Path("good.out").read_text() == "hello, world batch\n", Path("good.out").read_text()
    status = bad.wait(timeout=timedelta(seconds=40))
    assert status is not None, bad.status
    assert (status.state, status.exit_code) == (JobState.FAILED, 3), status
    long.wait(timeout=timedelta(seconds=40), target_states=[JobState.ACTIVE])
    long.cancel()
    status = long.wait(timeout=timedelta(seconds=40))
    # PSI/J calls a job canceled only where PBS killed it with KILL (Exit_status 265); TERM comes
    # out as failed.
    assert status is not None, long.status
    assert status.state in (JobState.CANCELED, JobState.FAILED), status
    assert subprocess.run(["qstat"], check=True, capture_output=True, text=True).stdout == ""
    print("done", good.status, bad.status, long.status)


if __name__ == "__main__":
    main()
