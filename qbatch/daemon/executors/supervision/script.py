"""The script of a job: its files, its environment, and the child that becomes it."""

from __future__ import annotations

import errno
import os
import time

from . import files
from .outputs import RefusedError
from .processes import MARKER

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, NoReturn
else:
    import _signal as signal

UNCATCHABLE = {int(signal.SIGKILL), int(signal.SIGSTOP)}
BUSY_TRIES = 100
BAD_INTERPRETER = 126
"""Exit status of a script whose ``#!`` line names no program, as a shell gives it; often a carriage return stands there."""


def write_job_files(directory: int, attempt: dict[str, Any]) -> None:
    """Script, node file and temporary directory of the job."""
    if attempt["script"] is not None:
        encoding = attempt.get("encoding", "utf-8")
        if attempt.get("script_file"):
            _copy(str(attempt["script_file"]), files.SCRIPT, directory)
        else:
            files.write_new(files.SCRIPT, attempt["script"], directory, 0o700, encoding)
    files.write_new(files.NODES, "".join(f"{line}\n" for line in attempt["node_file"]), directory)
    files.write_new(files.ALLOCATION, allocation_text(attempt.get("procs", 1)), directory)
    os.mkdir(files.TEMPORARY, 0o700, dir_fd=directory)


def _copy(source: str, name: str, directory: int) -> None:
    """Copy a long script, a piece at a time; the job may change its own."""
    try:
        whole = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise RefusedError(f"the script {source}: {error.strerror}; submit the job again") from None
    target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o700, dir_fd=directory)
    try:
        while piece := os.read(whole, 1 << 20):
            while piece:
                piece = piece[os.write(target, piece) :]
    finally:
        os.close(whole)
        os.close(target)


def allocation_text(procs: int) -> str:
    """What a job reads to learn how many processors it has: lines that a shell can source."""
    return f"NCPUS={procs}\nOMP_NUM_THREADS={procs}\n"


def job_environment(attempt: dict[str, Any], path: str, working: str, token: str) -> dict[str, str]:
    """The environment of the attempt, and what depends on the run directory."""
    own = {
        "PBS_NODEFILE": f"{path}/{files.NODES}",
        "PBS_JOBDIR": working,
        "TMPDIR": f"{path}/{files.TEMPORARY}",
        "QBATCH_ALLOCATION": f"{path}/{files.ALLOCATION}",
    }
    return {**own, **attempt["environment"], MARKER: token}


def command_of(attempt: dict[str, Any], path: str) -> list[str]:
    """What is executed: the script by its own ``#!`` line, or by the shell, or the plain command."""
    script = attempt["script"]
    if script is None:
        return [str(argument) for argument in attempt["argv"]]
    name = f"{path}/{files.SCRIPT}"
    command = [name] if script.startswith("#!") else [attempt["shell"] or "/bin/sh", name]
    return [*command, *attempt.get("arguments", ())]


def enter_directory(wanted: str) -> tuple[str, str]:
    """Go to the working directory, else to /; where we are, and what to say about it."""
    try:
        os.chdir(wanted)
    except (OSError, ValueError) as error:
        os.chdir("/")
        why = getattr(error, "strerror", None) or error
        return "/", f"working directory {wanted}: {why}; the job runs in /"
    return wanted, ""


def become(
    command: list[str], environment: dict[str, str], handles: tuple[int, int, int], leaf: str, report: int
) -> NoReturn:
    """In the forked child: shed all that is the supervisor's and execute; if that fails, say why and end.

    ``report`` is a pipe that closes when the execution succeeds.  Signals are blocked when this is called.
    """
    try:
        os.setsid()
        for number in signal.valid_signals():
            if number not in UNCATCHABLE:
                signal.signal(number, signal.SIG_DFL)
        _write_if_possible("/proc/self/oom_score_adj", b"0")
        if leaf:
            _write_if_possible(f"{leaf}/cgroup.procs", b"0")
        for target, handle in enumerate(handles):
            os.dup2(handle, target)
        # What was sent since the fork arrives now, and does what it does by default.
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        _execute(command, environment)
    except BaseException as error:
        text = f"cannot run {command[0] if command else 'an empty command'}: {getattr(error, 'strerror', '') or error}"
        os.write(report, text.encode("utf-8", "replace")[:2000])
        if _is_script(command):
            os._exit(BAD_INTERPRETER)
    finally:
        os._exit(127)


def _execute(command: list[str], environment: dict[str, str]) -> NoReturn:
    for _ in range(BUSY_TRIES):
        try:
            os.execvpe(command[0], command, environment)
        except OSError as error:
            # Text file busy: another thread forked while the script was being written, and has not executed yet.
            if error.errno == errno.ETXTBSY:
                time.sleep(0.01)
                continue
            if error.errno == errno.EACCES and _is_script(command):
                _execute([*_interpreter(command[0]), *command[1:]], environment)  # a file system mounted noexec
            if error.errno == errno.ENOENT and _is_script(command):
                named = _interpreter(command[0])[0]
                raise OSError(error.errno, f"no interpreter {named!r} (its first line)") from None
            raise
    raise OSError(errno.ETXTBSY, os.strerror(errno.ETXTBSY))


def _is_script(command: list[str]) -> bool:
    return bool(command) and command[0].endswith(f"/{files.SCRIPT}")


def _interpreter(path: str) -> list[str]:
    """What the kernel would run for a ``#!`` line."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
        line = stream.readline()[2:].strip(" \t\n")  # a carriage return belongs to the name, as for the kernel
    name, _, argument = line.replace("\t", " ").partition(" ")
    return [name, argument.strip(" "), path] if argument else [name, path]


def _write_if_possible(path: str, text: bytes) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        os.write(handle, text)
        os.close(handle)
    except OSError:
        pass
