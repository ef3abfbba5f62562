"""Every block of code of the documents: shell lines are typed, Python is executed, TOML is read,
job scripts are submitted."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest
import typer
import yaml
from matplotlib.testing.compare import compare_images

from qbatch.cli.main import app
from qbatch.daemon.config import read_config
from qbatch.sweeps.grid import grid_of, read_grid
from qbatch.wire.errors import ErrorRecord
from qbatch.wire.frames import LONGEST_REPLY, Splitter, encode
from qbatch.wire.requests import AnyRequest
from qbatch.workloads.machines import load_machine
from qbatch.workloads.tables.table_map import read_map
from tests.daemon.harness import Daemon
from tests.documents.blocks import DOCUMENTS, ROOT, Block, blocks_of, commands, every_block
from tests.documents.terminal import TypedShell
from tests.workloads.accounting.samples import BASE, SACCT_HEADER, Sample, pbs_pro, slurm

PHOTOGRAPHED = {"report.png"}
"""Pictures of a page in a browser after some clicks, made by hand."""

LANGUAGES = {"bash", "python", "toml", "sh", "text", "yaml", "dockerfile", "json", "csv", "mermaid"}
JOBS = [
    Sample(n, BASE + 60 * n, 30, 120 + n, 1, 4, 600, n % 7 != 0, f"user{n % 3}", "batch")
    for n in range(1, 41)
]


def prepare(home: Path, blocks: list[Block]) -> None:
    """Lay out what a reader has: accounting files of a PBS, sacct on PATH, and the files that the
    page shows."""
    for block in blocks:
        if block.file:
            (home / block.file).parent.mkdir(parents=True, exist_ok=True)
            (home / block.file).write_text(block.text, encoding="utf-8")
    spool = home / "spool" / "server_priv" / "accounting"
    spool.mkdir(parents=True)
    (spool / "20231114").write_text(
        "".join("\n".join(pbs_pro(job)) + "\n" for job in JOBS), encoding="utf-8"
    )
    (home / "rows").write_text(
        SACCT_HEADER + "\n" + "".join("\n".join(slurm(job)) + "\n" for job in JOBS),
        encoding="utf-8",
    )
    command = home / "bin" / "sacct"
    command.write_text(f"#!/bin/sh\ncat {home}/rows\n", encoding="utf-8")
    command.chmod(0o755)


def read_only(line: str) -> None:
    """Check what can be checked of a line that is not typed: goals of make, files of ours that are
    copied, options of qbatch."""
    words = line.partition("#")[0].split()
    if words[0] == "make":
        subprocess.run(
            ["make", "-n", words[1]], cwd=ROOT, capture_output=True, check=True, timeout=60
        )
    elif words[0] == "cp" and words[1].startswith("systemd/"):
        assert list(ROOT.glob(words[1])), line
    elif words[0] == "qbatch":
        group = typer.main.get_command(app)
        command = group.get_command(None, words[1])  # type: ignore[attr-defined]
        command.make_context(words[1], words[2:])


def is_run(block: Block) -> bool:
    return (
        block.language in ("bash", "python")
        and not block.not_run
        and not block.file
        and "def test_" not in block.text
    )


@pytest.mark.parametrize(
    "document", sorted({block.document for block in every_block() if is_run(block)})
)
def test_a_page_runs_from_its_first_line_to_its_last(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shell lines are typed into one shell, its Python is executed in one namespace, in the
    same folder, in order."""
    blocks = blocks_of(ROOT / document)
    space: dict[str, object] = {"__name__": "__page__"}
    with TypedShell(tmp_path, is_executed=document == "README.md") as shell:
        prepare(tmp_path, blocks)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        for block in blocks:
            if block.before:
                assert shell.type(block.before)[1] == 0, block.before
            if not is_run(block):
                continue
            if block.language == "python":
                exec(compile(block.text, block.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), space)
                continue
            for line in commands(block):
                said, code = shell.type(line)
                assert code == 0, f"{block.name}: {line}\n{said}"
                assert "Traceback" not in said, f"{block.name}: {line}\n{said}"
    for name in re.findall(
        r"!\[[^]]*\]\([^)]*\bimages/([^)]+\.png)\)", (ROOT / document).read_text(encoding="utf-8")
    ):
        assert is_drawn_as_shown(tmp_path / name, ROOT / "docs" / "images" / name), name


def is_drawn_as_shown(drawn: Path, shown: Path) -> bool:
    """Return whether the commands of a page draw the picture that the page shows
    (QBATCH_NEW_PICTURES=1: keep the new one)."""
    if drawn.name in PHOTOGRAPHED:
        return shown.is_file()
    if os.environ.get("QBATCH_NEW_PICTURES"):
        shutil.copyfile(drawn, shown)
    return compare_images(str(shown), str(drawn), tol=5) is None


def test_a_line_that_is_not_typed_has_options_that_exist() -> None:
    lines = [
        line
        for block in every_block()
        if block.language == "bash" and block.not_run
        for line in commands(block)
    ]
    for line in lines:
        read_only(line)
    assert sum(line.startswith("qbatch ") for line in lines) > 10


@pytest.mark.parametrize(
    "block",
    [block for block in every_block() if block.language == "toml" and not block.not_run],
    ids=lambda block: block.name,
)
def test_a_configuration_or_machine_file_is_read(block: Block, tmp_path: Path) -> None:
    """What it is shows in its tables: hosts make a machine file, columns the map of a table, a
    list of policies a sweep, all else configures a server."""
    path = tmp_path / "example.toml"
    path.write_text(block.text, encoding="utf-8")
    written = tomllib.loads(block.text)
    if "host" in written:
        assert len(load_machine(str(path)).hosts) >= len(written["host"])
    elif "columns" in written:
        assert set(read_map(path).columns) == set(written["columns"])
    elif "log" in written:
        grid = grid_of(read_grid(str(path))[0], str(path))
        assert list(grid.policy) == written["policy"]
    else:
        settings = read_config(path)
        assert len(settings.pools) == max(1, len(written.get("pool", ())))


@pytest.mark.parametrize(
    "block",
    [block for block in every_block() if block.language in ("yaml", "json")],
    ids=lambda block: block.name,
)
def test_a_file_for_another_program_can_be_read_by_it(block: Block) -> None:
    assert yaml.safe_load(block.text) if block.language == "yaml" else json.loads(block.text)


def test_the_frames_of_the_protocol_are_those_of_a_daemon(tmp_path: Path) -> None:
    (block,) = [block for block in every_block() if block.lines[0].startswith("-> ")]
    sent = [line[3:] for line in block.lines if line.startswith("-> ")]
    answers = {
        each["id"]: each
        for each in (json.loads(line[3:]) for line in block.lines if line.startswith("<- "))
    }
    assert len(sent) + len(answers) == len(block.lines)
    for line in sent:
        msgspec.json.decode(line.encode(), type=AnyRequest)
    heard: dict[int, dict[str, object]] = {}
    with Daemon(tmp_path) as daemon, socket.socket(socket.AF_UNIX) as connection:
        connection.connect(daemon.socket)
        splitter = Splitter(LONGEST_REPLY)
        for line in sent:
            connection.sendall(encode(line.encode()))
        while len(heard) < len(sent):
            heard.update(
                {
                    each["id"]: each
                    for each in map(json.loads, splitter.feed(connection.recv(1 << 16)))
                }
            )
    job = answers[7]["result"]["job"]
    assert re.fullmatch(r"\d+\.qbatch", job)
    heard[7]["result"]["job"] = job  # type: ignore[index]
    assert heard == {number: answers[number] for number in heard}
    for number in answers.keys() - heard.keys():
        error = msgspec.convert(answers[number]["error"], ErrorRecord)
        assert (error.code, error.pbs, error.exit) == ("not-permitted", 15007, 7)


@pytest.mark.parametrize(
    "block",
    [block for block in every_block() if block.language == "sh" and not block.file],
    ids=lambda block: block.name,
)
def test_a_job_script_runs(block: Block, tmp_path: Path) -> None:
    """It runs on a server with a policy that resizes jobs, which is what the scripts of the
    documents show."""
    with Daemon(tmp_path, "--policy", "equispatial", "--procs", "16") as daemon:
        (tmp_path / "job.sh").write_text(block.text + "echo has $NCPUS\n", encoding="utf-8")
        job = daemon.run(
            "qsub", "-N", "resized", "-j", "oe", "-W", "block=true", "job.sh"
        ).stdout.split(".")[0]
        assert (tmp_path / f"resized.o{job}").read_text(encoding="utf-8") == "has 8\n"


@pytest.mark.parametrize(
    "block",
    [block for block in every_block() if block.language == "python" and "def test_" in block.text],
    ids=lambda block: block.name,
)
def test_a_test_of_the_documents_passes(block: Block, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(block.text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_block_has_a_language_that_a_test_knows() -> None:
    assert {block.language for block in every_block()} <= LANGUAGES


def test_every_picture_is_shown_by_a_document() -> None:
    shown = {
        Path(name).name
        for path in DOCUMENTS
        for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", path.read_text("utf-8"))
    }
    assert {path.name for path in (ROOT / "docs" / "images").iterdir()} <= shown


def test_every_link_leads_somewhere() -> None:
    """Also to its heading: anchors are made of headings as GitHub and MkDocs make them."""
    headings = {path: anchors_of(path) for path in DOCUMENTS}
    for path in DOCUMENTS:
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            there = (path.parent / name).resolve() if name else path
            assert there.exists(), f"{path}: {link}"
            if anchor and there in headings:
                assert anchor in headings[there], f"{path}: {link}"


def anchors_of(path: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = [
        re.sub(r"[^\w\s-]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title)).strip().lower()
        for title in titles
    ]
    return {re.sub(r"[-\s]+", "-", title) for title in plain}
