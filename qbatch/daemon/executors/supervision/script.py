"""The script of a job: its files, the child process that becomes it, and the files that are staged
for it.

OpenPBS stages in the same way on one machine (``cp -rp``).  ``stagein`` happens before the script
starts; if it fails, the script does not start.  ``stageout`` happens when nothing of the job runs
any more.  A directory of its own (``sandbox=PRIVATE``) is removed at the end, unless it existed
before, or something could not be copied out of it.  Nothing else is deleted.
"""

# ruff: noqa: SIM105 (contextlib is not small)
from __future__ import annotations

import os

from . import files
from .outputs import RefusedError
from .processes import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

LOGIN_SHELLS = {"sh", "ash", "bash", "dash", "ksh", "ksh93", "mksh", "yash", "zsh"}
"""Shells that read the profile files of sh, each its own further ones, when their argv[0] begins
with ``-``."""

OTHER_SHELLS = {"csh", "tcsh", "fish"}
"""Login shells by the same sign; they do not understand ``KEEP_PATH``."""

KEEP_PATH = (
    'PATH=$(p={given}:; n=; while [ "$p" ]; do d=${{p%%:*}}; p=${{p#*:}}; '
    'case ":$PATH:" in *":$d:"*) ;; *) n=$n$d: ;; esac; done; printf %s "$n$PATH"); export PATH; '
)
"""Puts those directories of the job's PATH (``given``) in front again that a profile file (Debian's)
drops."""

NOT_FOUND = (126, 127)
"""Exit status, as of a shell, of a script with a ``#!`` line that names no program, often because
of a carriage return."""

PIPE_BYTES, F_SETPIPE_SZ = 65_536, 1031


def script_name(attempt: dict[str, Any]) -> str:
    """Return the name of the script's file: that of the job, as in OpenPBS."""
    return f"{attempt['job_id']}{files.SCRIPT_ENDING}".replace("/", "_")


def write_job_files(directory: int, attempt: dict[str, Any]) -> None:
    """Write the script, the node file and the allocation of the job, and make its temporary
    directory."""
    source = str(attempt.get("script_file", ""))
    if attempt["script"] is not None and source:  # a long script; the job may change its copy
        try:
            whole = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError as error:
            raise RefusedError(
                f"the script {source}: {error.strerror}; submit the job again"
            ) from None
        target = os.open(
            script_name(attempt), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700, dir_fd=directory
        )
        with open(whole, "rb", buffering=0) as reader, open(target, "wb") as writer:
            while part := reader.read(1 << 20):
                writer.write(part)
    elif attempt["script"] is not None:
        text = attempt["script"].encode(attempt.get("encoding", "utf-8"))
        files.write(script_name(attempt), text, directory, files.NEW, 0o700)
    nodes = "".join(f"{line}\n" for line in attempt["node_file"])
    files.write(files.NODES, nodes.encode("utf-8"), directory, files.NEW)
    files.write(
        files.ALLOCATION,
        allocation_text(attempt.get("procs", 1)).encode("ascii"),
        directory,
        files.NEW,
    )
    os.mkdir(files.TEMPORARY, 0o700, dir_fd=directory)


def stage_in(attempt: dict[str, Any]) -> None:
    """Make the directory and copy what the script needs; RefusedError names what cannot be made or
    copied."""
    directory = attempt["directory"]
    old = os.umask(int(attempt["umask"]))
    try:
        if attempt.get("is_private"):
            os.mkdir(directory, 0o700)
            attempt["made"] = True
        for local, remote in attempt.get("stage_in", ()):
            _stage(_under(attempt["home"], remote), _under(directory, local), "stagein")
    except OSError as error:
        raise RefusedError(f"directory {directory}: {error.strerror}") from None
    finally:
        os.umask(old)


def stage_out(attempt: dict[str, Any]) -> str:
    """Copy what the job leaves, and clear up; return what went wrong, if anything."""
    directory = attempt["directory"]
    failed: list[str] = []
    old = os.umask(int(attempt["umask"]))
    try:
        for local, remote in attempt.get("stage_out", ()):
            try:
                _stage(_under(directory, local), _under(attempt["home"], remote), "stageout")
            except RefusedError as refusal:
                failed.append(str(refusal))
    finally:
        os.umask(old)
    if attempt.get("made") and not failed:
        try:
            handle = os.open(os.path.dirname(directory), os.O_RDONLY | os.O_DIRECTORY)
            files.remove_tree(os.path.basename(directory), handle)
            os.close(handle)
        except OSError as error:
            failed.append(f"directory {directory}: {error.strerror}")
    return "; ".join(failed)


def _under(directory: str, path: str) -> str:
    return path if path.startswith("/") else f"{directory}/{path}"


def _stage(source: str, target: str, what: str) -> None:
    """Copy a file or a directory as ``cp -rp`` does; the last part of the source may have
    wildcards."""
    folder, _, name = source.rpartition("/")
    paths: list[str] = []
    if any(letter in name for letter in "*?["):
        from fnmatch import fnmatchcase

        try:
            paths = [
                f"{folder}/{each}"
                for each in sorted(os.listdir(folder or "/"))
                if fnmatchcase(each, name)
            ]
        except OSError:
            pass
    for path in paths or [source]:  # cp names what is missing
        goal = f"{target}/{os.path.basename(path.rstrip('/'))}" if os.path.isdir(target) else target
        try:
            if os.path.samefile(path, goal):
                continue
        except OSError:
            pass
        errors, errors_in = os.pipe()
        pid = os.posix_spawnp(
            "cp",
            ["cp", "-rp", "--", path, target],
            {"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            file_actions=[(os.POSIX_SPAWN_DUP2, errors_in, 2)],
        )
        os.close(errors_in)
        with open(errors, encoding="utf-8", errors="replace") as stream:
            first = next(stream, "").rstrip("\n")
            for _ in stream:
                pass
        if os.waitpid(pid, 0)[1]:
            raise RefusedError(f"{what} {path} to {target}: {first or 'cp failed'}")


def allocation_text(procs: int) -> str:
    """Return the text from which a job reads how many processors it has: lines that a shell can
    source."""
    return f"NCPUS={procs}\nOMP_NUM_THREADS={procs}\n"


class Command:
    """What is executed: the program, its arguments from argv[0] on, and its input."""

    def __init__(self, program: str, arguments: list[str], given: str = "") -> None:
        self.program, self.arguments, self.input = program, arguments, given


def command_of(attempt: dict[str, Any], path: str, environment: dict[str, str]) -> Command:
    """Return what is executed: the shell of the job, or the plain command.

    As in OpenPBS (start_exec.c, SHELL_INVOKE) the job's shell is a login shell, and reads the path
    of the script as its input.  So it executes the script as its child: the kernel honours a ``#!``
    line, and the shell itself interprets a script without one.  A program that is no shell
    (``-S /usr/bin/python3``) gets the script as its argument; a ``#!`` line goes before it.
    """
    script = attempt["script"]
    if script is None:
        command = [str(argument) for argument in attempt["argv"]]
        return Command(command[0] if command else "", command)
    name, shell = f"{path}/{script_name(attempt)}", str(attempt["shell"] or "/bin/sh")
    arguments = [str(argument) for argument in attempt.get("arguments", ())]
    own = _interpreter(name)
    kind = os.path.basename(shell)
    if kind not in LOGIN_SHELLS | OTHER_SHELLS:
        command = own or [shell, name]
        return Command(command[0], [*command, *arguments])
    words = [name]
    if os.statvfs(path).f_flag & os.ST_NOEXEC:  # nothing here can be executed
        words = own or [shell, name]
    line = " ".join(_quoted(word) for word in [*words, *arguments])
    if not attempt.get("login", True):
        return Command(shell, [shell], f"{line}\n")
    given = environment.get("PATH", "")
    if given and kind in LOGIN_SHELLS:
        line = KEEP_PATH.format(given=_quoted(given)) + line
    # Not every bash recognises its name alone.
    login = [f"-{kind}", "--login"] if kind == "bash" else [f"-{kind}"]
    return Command(shell, login, f"{line}\n")


def _quoted(word: str) -> str:
    """Return a word as a shell reads it."""
    plain = word.replace("/", "").replace(".", "").replace("-", "").replace("_", "")
    if plain.isascii() and plain.isalnum():
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def open_input(text: str) -> int:
    """Return the input of the job from which this text can be read; without one it is empty."""
    if not text:
        return os.open("/dev/null", os.O_RDONLY)
    data = text.encode("utf-8", "surrogateescape")
    reader, writer = os.pipe2(os.O_CLOEXEC)
    try:
        if len(data) > PIPE_BYTES:
            import fcntl

            fcntl.fcntl(writer, F_SETPIPE_SZ, len(data))
        os.write(writer, data)
    finally:
        os.close(writer)
    return reader


def missing_interpreter(attempt: dict[str, Any], path: str) -> str:
    """Return what is wrong with the ``#!`` line of the script of a run directory, if it names no
    program."""
    own = _interpreter(f"{path}/{script_name(attempt)}")
    return (
        f"no interpreter {own[0]!r} (its first line)" if own and not os.path.exists(own[0]) else ""
    )


def become(
    command: Command,
    environment: dict[str, str],
    handles: tuple[int, int, int],
    leaf: str,
    report: int,
) -> NoReturn:
    """In the forked child: drop everything of the supervisor and execute; if that fails, write why
    to ``report`` and end.

    ``report`` is a pipe that closes when the execution succeeds.  Signals are blocked when this is
    called.
    """
    try:
        os.setsid()
        for number in signal.valid_signals():
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_DFL)
        files.write_if_possible("/proc/self/oom_score_adj", b"0")
        if leaf:
            files.write_if_possible(f"{leaf}/cgroup.procs", b"0")
        for target, handle in enumerate(handles):
            os.dup2(handle, target)
        # What was sent since the fork arrives now, and does what it does by default.
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.execvpe(command.program, command.arguments, environment)
    except BaseException as error:
        text = (
            f"cannot run {command.program if command.arguments else 'an empty command'}: "
            f"{getattr(error, 'strerror', '') or error}"
        )
        os.write(report, text.encode("utf-8", "replace")[:2000])
    finally:
        os._exit(127)


def _interpreter(path: str) -> list[str]:
    """Return what the kernel would run for the ``#!`` line of a script, nothing without one."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
        # A carriage return belongs to the name, as for the kernel.
        line = stream.readline()
    if not line.startswith("#!"):
        return []
    name, _, argument = line[2:].strip(" \t\n").replace("\t", " ").partition(" ")
    if not name:
        return []
    return [name, argument.strip(" "), path] if argument else [name, path]
