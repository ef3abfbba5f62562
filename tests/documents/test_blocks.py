"""Every block of code of the documents: shell lines are typed, TOML and frames are read, scripts and tests are run."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import typer

from qbatch.cli.main import app
from qbatch.daemon.config import read_config
from qbatch.sweeps.grid import grid_of, read_grid
from qbatch.wire.errors import ErrorRecord
from qbatch.wire.frames import LONGEST_REPLY, Splitter, encode
from qbatch.wire.requests import AnyRequest
from qbatch.workloads.machines import load_machine
from tests.daemon.harness import Daemon
from tests.documents.blocks import DOCUMENTS, ROOT, Block, blocks_of, commands, every_block
from tests.documents.terminal import TypedShell
from tests.documents.test_writing_policies import codes
from tests.workloads.accounting.samples import BASE, SACCT_HEADER, Sample, pbs_pro, slurm

NOT_TYPED = {
    "make ": "is what starts this test, or takes as long; the goals are looked at",
    "pytest tests/contract --policy widest:": "is run by tests/documents/test_writing_policies.py",
    "systemctl ": "needs systemd as init; tests/systemd checks the units",
    "cp user/qbatch": "belongs to the line with systemctl behind it",
    "cp system/qbatch": "belongs to the line with systemctl behind it",
    "qbatch paper sp2-backfilling KTH": "real logs are no part of the project",
    "qbatch paper sp2-backfilling ": "minutes: every table of the paper",
    "qbatch paper origin2000 --out DIR": "an hour: 900 simulations",
    "qbatch paper origin2000 -m": "minutes",
    "qbatch paper origin2000 --days": "a minute",
    "qbatch paper qops CTC": "real logs are no part of the project",
    "qbatch paper qops KTH": "real logs are no part of the project",
    "qbatch paper scojo SDSC": "real logs are no part of the project",
    "qbatch paper scojo --workloads 5": "minutes",
    "qbatch paper closed-network --out": "minutes: 28,570 runs",
    "qbatch paper closed-network --replications 5": "minutes",
    "qbatch sweep study.toml --on dask": "needs a cluster; tests/sweeps/test_executors.py has one",
}
"""How the lines begin that are not typed, and why; those of qbatch are still read by its parser."""

BEFORE = {
    "docs/daemon.md: qbatch policy show": "qbatch up",
    "docs/daemon.md: qbatch shadow set": "unset QBATCH_STATE",
    "docs/logs.md: qbatch trace catalogue": (
        'mkdir c; ln -s "$QBATCH_CACHE"/* c/; rm -f c/traces; mkdir c/traces; export QBATCH_CACHE=$PWD/c; '
        "gzip < traces/demo-128.swf > c/traces/HPC2N-2002-2.2-cln.swf.gz"
    ),
    "docs/monitor.md: qbatch top ": "qbatch up; qbatch replay traces/tiny.txt -p easy --out result --quiet",
}
"""What the reader has done before a block, by how it begins: it speaks of a daemon that is up, of a result that is there."""

JOBS = [Sample(n, BASE + 60 * n, 30, 120 + n, 1, 4, 600, n % 7 != 0, f"user{n % 3}", "batch") for n in range(1, 41)]


def shell_blocks(document: str) -> list[Block]:
    return [block for block in blocks_of(ROOT / document) if not block.language and is_for_a_shell(block)]


def is_for_a_shell(block: Block) -> bool:
    return not block.lines[0].startswith(("-> ", "qbatch/"))


def prepare(home: Path) -> None:
    """Lay out what a reader has: accounting files of a PBS, sacct on PATH, and the policy that a document tells to write."""
    for name in ("deadlines", "own-log", "slices", "task-queues"):
        own = (block for block in every_block() if block.document == f"docs/{name}.md" and block.language == "toml")
        (home / f"{name}.toml").write_text(next(own).text, encoding="utf-8")
    grid = next(block for block in every_block() if block.document == "docs/sweeps.md" and block.language == "toml")
    (home / "study.toml").write_text(grid.text, encoding="utf-8")
    (home / "widest.py").write_text(next(code for code in codes() if "WidestFirst" in code), encoding="utf-8")
    spool = home / "spool" / "server_priv" / "accounting"
    spool.mkdir(parents=True)
    (spool / "20231114").write_text("".join("\n".join(pbs_pro(job)) + "\n" for job in JOBS), encoding="utf-8")
    (home / "rows").write_text(
        SACCT_HEADER + "\n" + "".join("\n".join(slurm(job)) + "\n" for job in JOBS), encoding="utf-8"
    )
    command = home / "bin" / "sacct"
    command.write_text(f"#!/bin/sh\ncat {home}/rows\n", encoding="utf-8")
    command.chmod(0o755)


def not_typed(line: str) -> bool:
    return line.startswith(tuple(NOT_TYPED))


def read_only(line: str) -> None:
    """Hold a line that is not typed to what can be held: goals of make, files that are copied, options of qbatch."""
    words = line.partition("#")[0].split()
    if words[0] == "make":
        subprocess.run(["make", "-n", words[1]], cwd=ROOT, capture_output=True, check=True, timeout=60)
    elif words[0] == "cp":
        assert list((ROOT / "systemd").glob(words[1])), line
    elif words[0] == "qbatch":
        group = typer.main.get_command(app)
        command = group.get_command(None, words[1])  # type: ignore[attr-defined]
        command.make_context(words[1], words[2:])


@pytest.mark.parametrize("document", sorted({block.document for block in every_block() if is_for_a_shell(block)}))
def test_what_a_document_says_is_typed_line_by_line_in_one_shell(document: str, tmp_path: Path) -> None:
    blocks = shell_blocks(document)
    lines = [(block, line) for block in blocks for line in commands(block)]
    for _, line in lines:
        if not_typed(line):
            read_only(line)
    if all(not_typed(line) for _, line in lines):
        return
    with TypedShell(tmp_path) as shell:
        prepare(tmp_path)
        for block, line in lines:
            if line == commands(block)[0]:
                for begin, before in BEFORE.items():
                    if f"{document}: {line}".startswith(begin):
                        assert shell.type(before)[1] == 0, before
            if not not_typed(line):
                said, code = shell.type(line)
                assert code == 0, f"{block.name}: {line}\n{said}"
                assert "Traceback" not in said, f"{block.name}: {line}\n{said}"


def test_what_is_said_to_be_before_a_block_is_before_one() -> None:
    begins = [f"{block.document}: {block.lines[0]}" for block in every_block()]
    assert all(any(begin.startswith(name) for begin in begins) for name in BEFORE)
    lines = [line for block in every_block() if is_for_a_shell(block) for line in commands(block)]
    assert all(any(line.startswith(name) for line in lines) for name in NOT_TYPED)


TOML = {
    "docs/daemon.md": read_config, "docs/deadlines.md": read_config, "docs/slices.md": read_config,
    "docs/task-queues.md": read_config, "docs/prediction.md": read_config, "docs/own-log.md": read_config,
    "docs/machine.md": lambda path: load_machine(str(path)),
    "docs/sweeps.md": lambda path: grid_of(read_grid(str(path))[0], str(path)),
}  # fmt: skip
COUNTS = {
    "docs/daemon.md": 2, "docs/daemon.md: policies": 1,
    "docs/deadlines.md": 1, "docs/slices.md": 1, "docs/task-queues.md": 1, "docs/prediction.md": 1,
    "docs/own-log.md": 1, "docs/machine.md": 65, "docs/sweeps.md": 3,
}  # fmt: skip
"""How many pools, hosts or policies each of them describes, or a block of one that begins with this word."""


@pytest.mark.parametrize(
    "block", [block for block in every_block() if block.language == "toml"], ids=lambda block: block.name
)
def test_a_configuration_or_machine_file_is_read(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "example.toml"
    path.write_text(block.text, encoding="utf-8")
    read = TOML[block.document](path)
    found = getattr(read, {"docs/machine.md": "hosts", "docs/sweeps.md": "policy"}.get(block.document, "pools"))
    of_block = f"{block.document}: {block.lines[0].split()[0]}"
    assert len(found) == COUNTS.get(of_block, COUNTS[block.document])


def test_the_frames_of_the_protocol_are_those_of_a_daemon(tmp_path: Path) -> None:
    (block,) = [block for block in blocks_of(ROOT / "docs" / "protocol.md") if block.lines[0].startswith("-> ")]
    sent = [line[3:] for line in block.lines if line.startswith("-> ")]
    told = {each["id"]: each for each in (json.loads(line[3:]) for line in block.lines if line.startswith("<- "))}
    assert len(sent) + len(told) == len(block.lines)
    for line in sent:
        msgspec.json.decode(line.encode(), type=AnyRequest)
    heard: dict[int, dict[str, object]] = {}
    with Daemon(tmp_path) as daemon, socket.socket(socket.AF_UNIX) as connection:
        connection.connect(daemon.socket)
        splitter = Splitter(LONGEST_REPLY)
        for line in sent:
            connection.sendall(encode(line.encode()))
        while len(heard) < len(sent):
            heard.update({each["id"]: each for each in map(json.loads, splitter.feed(connection.recv(1 << 16)))})
    job = told[7]["result"]["job"]
    assert re.fullmatch(r"\d+\.qbatch", job)
    heard[7]["result"]["job"] = job  # type: ignore[index]
    assert heard == {number: told[number] for number in heard}
    for number in told.keys() - heard.keys():
        error = msgspec.convert(told[number]["error"], ErrorRecord)
        assert (error.code, error.pbs, error.exit) == ("not-permitted", 15007, 7)


def test_the_script_of_a_job_that_is_resized_runs(tmp_path: Path) -> None:
    (block,) = [block for block in every_block() if block.language == "sh"]
    with Daemon(tmp_path, "--policy", "equispatial", "--procs", "16") as daemon:
        (tmp_path / "job.sh").write_text(block.text + "echo has $NCPUS\n", encoding="utf-8")
        job = daemon.run("qsub", "-N", "resized", "-j", "oe", "-W", "block=true", "job.sh").stdout.split(".")[0]
        assert (tmp_path / f"resized.o{job}").read_text(encoding="utf-8") == "has 8\n"


@pytest.mark.parametrize(
    "block", [block for block in every_block() if block.language == "python" and "def test_" in block.text],
    ids=lambda block: block.name,
)  # fmt: skip
def test_a_test_of_the_documents_passes(block: Block, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(block.text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"], cwd=tmp_path, text=True,
        capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_layout_of_the_house_is_that_of_its_folders() -> None:
    (block,) = [block for block in every_block() if block.lines[0] == "qbatch/"]
    named = [found[1] for line in block.lines if (found := re.match(r" {2}([\w.]+/?) ", line))]
    folders = {f"{path.name}/" for path in (ROOT / "qbatch").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {name for name in named if name.endswith("/")} == folders
    assert all((ROOT / "qbatch" / name).exists() for name in named)


def test_every_block_is_held_to_something() -> None:
    """A language that nobody reads here would be a block that nobody holds to the program."""
    kinds = {(block.language, block.document if block.language == "toml" else "") for block in every_block()}
    assert kinds == {("", ""), ("sh", ""), ("python", ""), *(("toml", name) for name in TOML)}
    without = {path.name for path in DOCUMENTS if not blocks_of(path)}
    assert without <= {"origin2000-results.md", "statistics.md"}


def test_every_picture_is_shown_by_a_document() -> None:
    shown = {Path(name).name for path in DOCUMENTS for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", path.read_text("utf-8"))}
    assert {path.name for path in (ROOT / "docs" / "images").iterdir()} <= shown
