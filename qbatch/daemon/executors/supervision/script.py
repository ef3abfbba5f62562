"""The script of a job: its files, the child process that becomes it, and the files that are staged
for it.

OpenPBS stages in the same way on one machine (``cp -rp``).  ``stagein`` happens before the script
starts; if it fails, the script does not start.  ``stageout`` happens when nothing of the job runs
any more.  A directory of its own (``sandbox=PRIVATE``) is removed at the end, unless it existed
before, or something could not be copied out of it.  Nothing else is deleted.
"""

# ruff: noqa: SIM105 (contextlib is not small)
from __future__ import annotations

import errno
import os
import time

from . import files
from .outputs import RefusedError
from .processes import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

BUSY_TRIES = 100
LOGIN_SHELLS = {"sh", "ash", "bash", "dash", "ksh", "ksh93", "mksh", "yash", "zsh"}
"""Shells that read the profile files of sh, each its own further ones, when their argv[0] begins
with ``-``."""

OTHER_SHELLS = {"csh", "tcsh", "fish"}
"""Login shells by the same sign; they do not understand the text that the others get with
``-c``."""

KEEP_PATH = (
    'PATH=$(p=$1:; n=; while [ "$p" ]; do d=${p%%:*}; p=${p#*:}; '
    'case ":$PATH:" in *":$d:"*) ;; *) n=$n$d: ;; esac; done; printf %s "$n$PATH"); '
)
"""Puts those directories of the job's PATH (the first argument) in front again that a profile file
(Debian's) drops."""

BAD_INTERPRETER = 126
"""Exit status, as of a shell, of a script with a ``#!`` line that names no program, often because
of a carriage return."""


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
            files.SCRIPT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700, dir_fd=directory
        )
        with open(whole, "rb", buffering=0) as reader, open(target, "wb") as writer:
            while part := reader.read(1 << 20):
                writer.write(part)
    elif attempt["script"] is not None:
        text = attempt["script"].encode(attempt.get("encoding", "utf-8"))
        files.write(files.SCRIPT, text, directory, files.NEW, 0o700)
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


def command_of(
    attempt: dict[str, Any], path: str, environment: dict[str, str]
) -> tuple[str, list[str]]:
    """Return the program that is executed, and its arguments from argv[0] on: the script, or the
    plain command.

    If a shell runs the script, it is a login shell: it reads the profile files, then the script, or
    executes the shell of the script's ``#!`` line.  Other scripts with such a line are executed as
    they are.  (In OpenPBS the login shell gets the name of every script as its input, and so
    executes it: start_exec.c, SHELL_INVOKE.)
    """
    script = attempt["script"]
    if script is None:
        command = [str(argument) for argument in attempt["argv"]]
        return (command[0] if command else ""), command
    name, shell = f"{path}/{files.SCRIPT}", str(attempt["shell"] or "/bin/sh")
    arguments = [str(argument) for argument in attempt.get("arguments", ())]
    own = _interpreter(name) if script.startswith("#!") else []
    runner = own or [shell]
    is_run_by_shell = _kind_of(runner) in LOGIN_SHELLS | OTHER_SHELLS and os.access(
        runner[0], os.X_OK
    )
    # The shell that reads the profile files: the job's own, or that of the #! line if the job's is
    # none of these.
    readers = [
        each
        for each in (shell, *own[:1])
        if _kind_of([each]) in LOGIN_SHELLS and os.access(each, os.X_OK)
    ]
    if not attempt.get("login", True) or not is_run_by_shell or not readers:
        if own:
            return name, [name, *arguments]
        is_login = attempt.get("login", True) and _kind_of([shell]) in OTHER_SHELLS
        return shell, [f"-{_kind_of([shell])}" if is_login else shell, name, *arguments]
    kind, given = _kind_of(readers), environment.get("PATH", "")
    # Not every bash recognises its name alone.
    login = [f"-{kind}", "--login"] if kind == "bash" else [f"-{kind}"]
    text = (KEEP_PATH if given else "") + "shift; " + ('exec "$@"' if own else '. "$0"')
    return readers[0], [*login, "-c", text, name, given, *own, *arguments]


def _kind_of(command: list[str]) -> str:
    """Return the name of the program that runs a script, also behind ``/usr/bin/env``."""
    name = os.path.basename(command[0])
    if name == "env" and len(command) > 1:
        words = [
            word for word in command[1].split() if not word.startswith("-") and "=" not in word
        ]
        name = os.path.basename(words[0]) if words else name
    return name


def become(
    program: str,
    command: list[str],
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
        _execute(program, command, environment)
    except BaseException as error:
        text = (
            f"cannot run {program if command else 'an empty command'}: "
            f"{getattr(error, 'strerror', '') or error}"
        )
        os.write(report, text.encode("utf-8", "replace")[:2000])
        if _is_script(program):
            os._exit(BAD_INTERPRETER)
    finally:
        os._exit(127)


def _execute(program: str, command: list[str], environment: dict[str, str]) -> NoReturn:
    for _ in range(BUSY_TRIES):
        try:
            os.execvpe(program, command, environment)
        except OSError as error:
            # Text file busy: another thread forked while the script was being written, and has not
            # executed yet.
            if error.errno == errno.ETXTBSY:
                time.sleep(0.01)
                continue
            if error.errno == errno.EACCES and _is_script(program):
                interpreter = _interpreter(program)
                # A file system mounted noexec.
                _execute(interpreter[0], [*interpreter, *command[1:]], environment)
            if error.errno == errno.ENOENT and _is_script(program):
                named = _interpreter(program)[0]
                raise OSError(error.errno, f"no interpreter {named!r} (its first line)") from None
            raise
    raise OSError(errno.ETXTBSY, os.strerror(errno.ETXTBSY))


def _is_script(program: str) -> bool:
    return program.endswith(f"/{files.SCRIPT}")


def _interpreter(path: str) -> list[str]:
    """Return what the kernel would run for a ``#!`` line."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
        # A carriage return belongs to the name, as for the kernel.
        line = stream.readline()[2:].strip(" \t\n")
    name, _, argument = line.replace("\t", " ").partition(" ")
    return [name, argument.strip(" "), path] if argument else [name, path]
