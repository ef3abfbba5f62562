"""The other program named qbatch (CoBrALab): writes array scripts with Torque's ``-d``, ``-t`` and
directories for ``-o``."""

import os
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    command = str(Path(sys.executable).parent / "qbatch")
    work = Path("elsewhere")
    work.mkdir()
    # What it hands the commands of a chunk to is no Python package: a shell that runs line by line
    # stands in for it.
    tools = Path("tools").resolve()
    tools.mkdir()
    (tools / "parallel").write_text("#!/bin/sh\nexec sh\n")
    (tools / "parallel").chmod(0o755)
    os.environ["PATH"] += f":{tools}"
    listed = (
        "\n".join(f"echo {number} > {number}.txt; pwd > {number}.pwd" for number in range(4)) + "\n"
    )
    subprocess.run(
        [
            command,
            "--system",
            "pbs",
            "--workdir",
            str(work.resolve()),
            "--chunksize",
            "2",
            "--walltime",
            "0:5:0",
            "--jobname",
            "numbers",
            "-",
        ],
        input=listed,
        text=True,
        check=True,
    )
    deadline = time.monotonic() + 60
    while not all((work / f"{number}.pwd").exists() for number in range(4)):
        assert time.monotonic() < deadline, (
            os.listdir(work),
            subprocess.run(["qstat", "-f"], check=False, text=True),
        )
        time.sleep(0.1)
    assert [(work / f"{number}.pwd").read_text().strip() for number in range(4)] == [
        str(work.resolve())
    ] * 4
    after = [
        command,
        "--system",
        "pbs",
        "--workdir",
        str(work.resolve()),
        "--depend",
        "numbers*",
        "--jobname",
        "after",
        "--",
    ]
    subprocess.run([*after, "touch", "after.txt"], check=True)
    while not (work / "after.txt").exists():
        assert time.monotonic() < deadline, subprocess.run(["qstat", "-f"], check=False, text=True)
        time.sleep(0.1)
    print("done")


if __name__ == "__main__":
    main()
