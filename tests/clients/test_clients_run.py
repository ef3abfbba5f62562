"""Real clients, unmodified, do real work through the process executor (docs/spec/pbs.md section
7)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from qbatch.library.private_server import PrivateServer

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parents[1] / ".venv-clients"

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/self/stat"), reason="the process executor needs /proc"
)


def python_of(name: str) -> Path:
    """The interpreter of a client's environment; without it, the test fails in CI and is skipped
    elsewhere."""
    if not (ENVIRONMENTS / name / ".installed").exists():
        log = ENVIRONMENTS / f"{name}.log"
        lines = (
            [line for line in log.read_text(errors="replace").splitlines() if line]
            if log.exists()
            else []
        )
        reason = f"{name} is not installed (make clients): {' '.join(lines[-3:]) or 'nobody tried'}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return ENVIRONMENTS / name / "bin" / "python"


@pytest.mark.parametrize(
    ("name", "script", "arguments", "is_torque"),
    [
        ("snakemake", "run_snakemake.py", (), False),
        ("dask", "run_dask.py", (), False),
        ("qtoolkit", "run_qtoolkit.py", (), False),
        ("parsl", "run_parsl.py", ("PBSPro",), False),
        ("parsl", "run_parsl.py", ("Torque",), True),
        ("psij", "run_psij.py", ("pbs",), False),
        ("psij", "run_psij.py", ("pbs_classic",), False),
        ("reframe", "run_reframe.py", ("pbs",), False),
        ("reframe", "run_reframe.py", ("pbspro",), False),
        ("reframe", "run_reframe.py", ("torque",), True),
        ("ipyparallel", "run_ipyparallel.py", (), True),
        ("signac", "run_signac.py", (), True),
        ("cobralab", "run_cobralab.py", (), True),
    ],
    ids=[
        "snakemake",
        "dask",
        "qtoolkit",
        "parsl-pbspro",
        "parsl-torque",
        "psij-pbs",
        "psij-pbs-classic",
        "reframe-pbs",
        "reframe-pbspro",
        "reframe-torque",
        "ipyparallel-torque",
        "signac-torque",
        "cobralab-torque",
    ],
)
def test_client(
    name: str, script: str, arguments: tuple[str, ...], is_torque: bool, tmp_path: Path
) -> None:
    python = python_of(name)
    config = tmp_path / "qbatch.toml"
    # The profile files of those who run the tests are no part of them.
    config.write_text("login_shell = false\n")
    with PrivateServer(config=str(config), is_torque=is_torque) as server:
        given = {
            **os.environ,
            "PATH": f"{python.parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "IPYTHONDIR": str(tmp_path / "i"),
        }
        environment = server.environment(
            {key: value for key, value in given.items() if not key.startswith("PYTHON")}
        )
        done = subprocess.run(
            [python, HERE / script, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, (
            f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}\n{server.log[-3000:]}"
        )
    assert not os.path.exists(server.directory)
