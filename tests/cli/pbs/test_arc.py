"""NorduGrid ARC (src/services/a-rex/lrms/pbspro/submit-pbspro-job.in): a script with the directives
that it writes is submitted as it does it, ``qsub -S /bin/bash``, with and without a file system
that the nodes share, and runs."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from qbatch.library.private_server import PrivateServer

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/self/stat"), reason="the process executor needs /proc"
)

CONFIG = """
login_shell = false
[[pool]]
hosts = "n[1-2]"
cpus = 4
memory = "4GB"
[[queue]]
name = "grid"
"""


def script(session: Path, scratch: Path, *, is_shared: bool) -> str:
    """What the generator writes for a job of two processes on one node."""
    host = os.uname().nodename
    identifier = session.name
    staging = (
        f"#PBS -W stagein={scratch}@{host}:{session}\n"
        f"#PBS -W stageout={scratch}/{identifier}@{host}:{session.parent}\n"
        f"#PBS -W stageout={scratch}/{identifier}.diag@{host}:{session}.diag\n"
    )
    directory = session if is_shared else scratch / identifier
    return (
        "# PBSPro batch job script built by arex\n#PBS -m n\n#PBS -r n\n"
        f"#PBS -o '{session}.comment'\n#PBS -j oe\n\n#PBS -q grid\n#PBS -p 0\n#PBS "
        "Account_Name=vo\n"
        "#PBS -WJob_Name='N1st_job'\n#PBS -l select=1:ncpus=2:mem=200mb\n#PBS -l place=free:excl\n"
        "#PBS -l cput=10:0\n#PBS -l walltime=5:0\n"
        f"{'' if is_shared else staging}"
        "\n# Overide umask of execution node (sometime values are really strange)\numask 077\n \n"
        f"cd {directory} || exit 1\nexport HOME={directory}\ncat input > output\n"
        f'echo "nodename=$(sort -u $PBS_NODEFILE)" >> {directory}.diag\necho said; exit 0\n'
    )


@pytest.mark.parametrize("is_shared", [True, False])
def test_what_it_generates_is_taken_and_runs(tmp_path: Path, is_shared: bool) -> None:
    session, scratch = tmp_path / "sessions/a1b2", tmp_path / "scratch"
    session.mkdir(parents=True)
    scratch.mkdir()
    (session / "input").write_text("data\n")
    generated = tmp_path / "pbs.job"
    generated.write_text(script(session, scratch, is_shared=is_shared))
    config = tmp_path / "qbatch.toml"
    config.write_text('executor = "process"\ndefault_queue = "grid"\n' + CONFIG)
    with PrivateServer(config=str(config)) as server:
        environment = server.environment()

        def run(*command: str) -> str:
            done = subprocess.run(
                command,
                env=environment,
                cwd=session,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, ""), done
            return done.stdout

        job = run("qsub", "-S", "/bin/bash", str(generated)).strip()
        deadline = time.monotonic() + 60
        while "job_state = F" not in (shown := run("qstat", "-x", "-f", "-w", job)):
            assert time.monotonic() < deadline, shown
            time.sleep(0.1)
    for line in (
        "Job_Name = N1st_job",
        "Account_Name = vo",
        "Rerunable = False",
        "Join_Path = oe",
        "Exit_status = 0",
        "Resource_List.place = free:excl",
        "Resource_List.cput = ",
    ):
        assert f"    {line}" in shown, line
    assert (session / "output").read_text() == "data\n"
    assert Path(f"{session}.comment").read_text() == "said\n"
    assert Path(f"{session}.diag").read_text().startswith("nodename=n1")
