"""``qbatch doctor``: find what is wrong with the installation and how to repair it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import typer

from qbatch.cli.daemon_answers import print_json
from qbatch.cli.which_daemon import STATE
from qbatch.distribution import NAME, TAKEN_NAME
from qbatch.model.errors import QbatchError
from qbatch.wire import paths

_COMMANDS = ("qbatch", "qsub", "qstat", "qdel", "pbsnodes")


class HealthFinding(NamedTuple):
    """The result of one check: ``ok``, ``warning`` or ``wrong``, with the way out."""

    what: str
    verdict: str
    text: str
    way_out: str = ""


def doctor(
    json: bool = typer.Option(False, "--json", help="Print the findings as JSON."),
    state: Path | None = STATE,
) -> None:
    """Check everything that a daemon needs; print what is wrong and how to repair it (exit 1 if
    anything is wrong)."""
    findings = list(_look(paths.state_directory()))
    if json:
        print_json("doctor", {"findings": [finding._asdict() for finding in findings]})
    else:
        for finding in findings:
            way_out = f"; {finding.way_out}" if finding.way_out else ""
            sys.stdout.write(f"{finding.verdict:<8}{finding.what}: {finding.text}{way_out}\n")
    raise typer.Exit(1 if any(finding.verdict == "wrong" for finding in findings) else 0)


def _look(state: Path) -> Iterator[HealthFinding]:
    from qbatch.daemon.config import read_config

    version = ".".join(str(part) for part in sys.version_info[:3])
    yield HealthFinding("Python", "ok", f"version {version} at {sys.executable}")
    yield from _distribution()
    yield from _socket()
    path = paths.config_path()
    if path.exists():
        try:
            read_config(path)
            yield HealthFinding("configuration", "ok", str(path))
        except QbatchError as error:
            yield HealthFinding(
                "configuration", "wrong", str(error), "check it with: qbatch config check"
            )
    else:
        yield HealthFinding(
            "configuration", "ok", f"no file at {path}: the built-in configuration applies"
        )
    yield from _store(state)
    yield from _cache()
    yield from _commands()
    yield from _daemon()


def _distribution() -> Iterator[HealthFinding]:
    """Check how this program is installed, and whether the other program called ``qbatch`` shares
    the environment."""
    try:
        yield HealthFinding("distribution", "ok", f"{NAME} {metadata.version(NAME)}")
    except metadata.PackageNotFoundError:
        yield HealthFinding(
            "distribution",
            "ok",
            f"{NAME} is not installed; it runs from {Path(__file__).parents[2]}",
        )
    try:
        other = metadata.distribution(TAKEN_NAME)
    except metadata.PackageNotFoundError:
        return
    again = f"pip uninstall {TAKEN_NAME}, then install {NAME} again: both own the command qbatch"
    is_other = any(str(file) == "qbatch/qbatch.py" for file in other.files or ())
    what = (
        "another program (a submitter for PBS, SGE and Slurm)"
        if is_other
        else "this program under its former name"
    )
    text = f"{TAKEN_NAME} {other.version} is {what}, and is installed here too"
    yield HealthFinding("distribution", "wrong" if is_other else "warning", text, again)


def _socket() -> Iterator[HealthFinding]:
    try:
        path = paths.socket_path()
        paths.check_socket(path)
    except QbatchError as error:
        yield HealthFinding("socket", "wrong", str(error))
        return
    size = len(os.fsencode(path))
    if size > paths.LONGEST_SOCKET:
        text = f"{path} has {size} bytes, the kernel allows {paths.LONGEST_SOCKET}"
        yield HealthFinding("socket", "wrong", text, "set QBATCH_SOCKET to a shorter path")
    elif path != paths.SYSTEM_SOCKET and (reason := _why_not_written(Path(path).parent)):
        text = f"{path} cannot be created: {reason}"
        yield HealthFinding(
            "socket", "wrong", text, "set QBATCH_SOCKET to a path in a folder of your own"
        )
    elif not os.environ.get("XDG_RUNTIME_DIR") and not os.environ.get("QBATCH_SOCKET"):
        yield HealthFinding("socket", "ok", f"{path} (there is no XDG_RUNTIME_DIR)")
    else:
        yield HealthFinding("socket", "ok", path)


def _why_not_written(folder: Path) -> str:
    """Try to write a file in a folder, or to create the folder; return why that fails, or an empty
    text."""
    try:
        if folder.is_dir():
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"qbatch doctor")
                file.flush()
                os.fsync(file.fileno())
            return ""
        if folder.exists():
            return f"{folder} is not a directory"
        parent = next(each for each in folder.absolute().parents if each.exists())
        os.rmdir(tempfile.mkdtemp(prefix=".qbatch-doctor-", dir=parent))
    except OSError as error:
        return f"{error.strerror or error}"
    return ""


def _cache() -> Iterator[HealthFinding]:
    from qbatch.planning.kernels.jit import cache_folder
    from qbatch.planning.kernels.native import refusal

    folder = paths.cache_directory()
    unwritable = _why_not_written(folder)
    if unwritable:
        text = (
            f"{folder} cannot be written ({unwritable}): every process compiles the kernels again"
        )
        yield HealthFinding("cache", "warning", text, "set QBATCH_CACHE to a folder of your own")
        return
    try:
        kernels = cache_folder() if folder.is_dir() else folder
    except QbatchError as error:
        yield HealthFinding("cache", "wrong", str(error))
        return
    yield HealthFinding("cache", "ok", str(folder))
    if kernels is None:
        return
    reason = refusal(kernels)
    if reason:
        text = "not kept: each command that runs kernels loads Numba, half a second"
        yield HealthFinding("object code", "warning", text, reason)
    else:
        later = " from the first compilation on" if reason is None else ""
        yield HealthFinding(
            "object code", "ok", f"kept{later}: a command with compiled kernels does not load Numba"
        )


def _store(state: Path) -> Iterator[HealthFinding]:
    from qbatch.daemon.store import check_directory

    another = "give another with --state or QBATCH_STATE"
    reason = _why_not_written(state)
    if reason:
        yield HealthFinding("store", "wrong", f"{state} cannot be written ({reason})", another)
        return
    if not state.exists():
        yield HealthFinding("store", "ok", f"nothing yet at {state}; the first start creates it")
        return
    found = state.stat()
    if found.st_uid != os.getuid():
        yield HealthFinding("store", "wrong", f"{state} belongs to user {found.st_uid}", another)
    elif found.st_mode & 0o077:
        yield HealthFinding(
            "store", "warning", f"{state} may be entered by others", f"chmod 700 {state}"
        )
    else:
        try:
            check_directory(state)
            yield HealthFinding("store", "ok", str(state))
        except QbatchError as error:
            yield HealthFinding("store", "wrong", str(error))
    free = shutil.disk_usage(state).free
    if free < 64 << 20:
        way_out = "make space: submissions are refused when it is full"
        yield HealthFinding("disk", "wrong", f"{free >> 20} MB are free at {state}", way_out)
    else:
        yield HealthFinding("disk", "ok", f"{free >> 20} MB free")


def _commands() -> Iterator[HealthFinding]:
    ours = Path(sys.executable).parent
    for name in _COMMANDS:
        first = shutil.which(name)
        if first is None:
            yield HealthFinding(
                name,
                "warning",
                "is not on PATH",
                f"add {ours} to PATH, or use: qbatch run -- COMMAND",
            )
        elif Path(first).parent.resolve() != ours.resolve():
            other = "the other program of that name" if name == "qbatch" else "another PBS or Slurm"
            yield HealthFinding(
                name, "warning", f"{first} comes first on PATH: {other}?", f"put {ours} in front"
            )
        else:
            yield HealthFinding(name, "ok", first)


def _daemon() -> Iterator[HealthFinding]:
    from qbatch.client import ClientSession
    from qbatch.wire.records import ServerRecord, Text
    from qbatch.wire.requests import Check, ServerStatus

    try:
        with ClientSession(patience=0.0) as session:
            server = session.ask(ServerStatus(), ServerRecord)
            yield HealthFinding("daemon", "ok", f"process {server.pid}, {server.total} jobs")
            for problem in server.problems:
                yield HealthFinding("daemon", "wrong", problem)
            yield HealthFinding(
                "invariants", "ok", session.ask(Check(), Text).text.strip().splitlines()[-1]
            )
    except QbatchError as error:
        verdict = "warning" if error.exit_code in (5, 7) else "wrong"
        yield HealthFinding("daemon", verdict, str(error))
