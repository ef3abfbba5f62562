"""dask-jobqueue: a cluster of two workers, each a job, computes and closes.  Run by the environment
of the client."""

import os
import subprocess
import time

from dask_jobqueue import PBSCluster
from distributed import Client


def jobs() -> list[str]:
    lines = subprocess.run(
        ["qstat"], check=True, capture_output=True, text=True
    ).stdout.splitlines()[2:]
    return [line.split()[0] for line in lines if line.split()[4] != "F"]


def main() -> None:
    with (
        PBSCluster(
            cores=1,
            memory="512MB",
            processes=1,
            walltime="00:05:00",
            interface="lo",
            log_directory="logs",
            queue="batch",
            job_extra_directives=["-V"],
            death_timeout=60,
            scheduler_options={"dashboard_address": ":0"},
        ) as cluster,
        Client(cluster) as client,
    ):
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=60)
        assert len(jobs()) == 2, jobs()
        futures = client.map(
            lambda number: (number * number, os.environ["PBS_JOBID"]), range(20), pure=False
        )
        squares = client.gather(futures)
        assert [square for square, _ in squares] == [number * number for number in range(20)]
        assert {name for _, name in squares} <= set(jobs()), (squares, jobs())
        cluster.scale(jobs=1)
        deadline = time.monotonic() + 30
        while len(jobs()) != 1:
            assert time.monotonic() < deadline, jobs()
            time.sleep(0.1)
    deadline = time.monotonic() + 30
    while jobs():
        assert time.monotonic() < deadline, jobs()
        time.sleep(0.1)
    finished = subprocess.run(
        ["qstat", "-x"], check=True, capture_output=True, text=True
    ).stdout.splitlines()[2:]
    assert len(finished) == 2, finished
    assert sorted(os.listdir("logs")), "the jobs wrote no logs"
    print("done", os.listdir("logs"))


if __name__ == "__main__":
    main()
