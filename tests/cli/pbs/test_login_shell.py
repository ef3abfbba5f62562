"""``module load`` in jobs, through the commands: the shell of a job is a login shell, and keeps the
PATH it was given."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from qbatch.library.private_server import PrivateServer

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/self/stat"), reason="the process executor needs /proc"
)

PROFILE = """
module() { PATH=/modules/$2/bin:$PATH; }
export -f module
PATH=/usr/local/bin:/usr/bin:/bin
"""

SCRIPT = (
    'module load gcc\necho "$PATH"\ncommand -v qstat > /dev/null && qstat "$PBS_JOBID" | tail -1\n'
)


def test_a_module_is_loaded_in_scripts_with_and_without_a_first_line(tmp_path: Path) -> None:
    (tmp_path / ".bash_profile").write_text(PROFILE)
    with PrivateServer() as server:
        environment = {**server.environment(), "HOME": str(tmp_path), "MINE": "kept"}
        environment["PATH"] = f"/venv/bin:{environment['PATH']}"
        for name, first in (("plain", ""), ("named", "#!/bin/bash\n")):
            (tmp_path / name).write_text(first + SCRIPT + 'echo "$MINE"\n')
            command = [
                "qsub",
                "-S",
                "/bin/bash",
                "-V",
                "-W",
                "block=true",
                "-j",
                "oe",
                "-o",
                f"{name}.out",
                name,
            ]
            done = subprocess.run(
                command,
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            path, row, mine = (tmp_path / f"{name}.out").read_text().splitlines()
            assert path.startswith("/modules/gcc/bin:")
            assert "/venv/bin" in path.split(":")
            assert row.split()[4] == "R"  # the PBS commands are there
            assert mine == "kept"
