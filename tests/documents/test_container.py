"""The container file of docs/how-to/container.md builds, and its server runs a job, where docker or
podman can build."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.documents.blocks import ROOT, blocks_of


def builder() -> str:
    for name in ("docker", "podman"):
        if (
            shutil.which(name)
            and subprocess.run([name, "info"], capture_output=True, check=False).returncode == 0
        ):
            return name
    pytest.skip("neither docker nor podman can build here")


def test_the_image_is_built_and_runs_a_job(tmp_path) -> None:
    name = builder()
    (block,) = [
        block for block in blocks_of(ROOT / "docs" / "how-to" / "container.md") if block.file
    ]
    (tmp_path / "Containerfile").write_text(block.text, encoding="utf-8")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for file in listed:
        (tmp_path / "source" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / "source" / file)
    build = [
        name,
        "build",
        "--tag",
        "qbatch-test",
        "--file",
        str(tmp_path / "Containerfile"),
        str(tmp_path / "source"),
    ]
    subprocess.run(build, check=True, timeout=800)
    job = "echo 'echo it runs' | qsub -N job -j oe -W block=true && cat job.o*"
    done = subprocess.run(
        [name, "run", "--rm", "qbatch-test", "sh", "-c", job],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "it runs" in done.stdout) == (0, True), done.stdout + done.stderr
