"""Files that are copied before and after a job, and the directory of its own that a job may work in.

OpenPBS does the same on one machine (``cp -rp``).  ``stagein`` happens before the script starts; if it fails, the script does not
start.  ``stageout`` happens when nothing of the job runs any more.  A directory of its own (``sandbox=PRIVATE``) is removed at
the end, unless it existed before, or something could not be copied out of it.  Nothing else is deleted.
"""

from __future__ import annotations

import os

from . import files
from .outputs import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WILD = "*?["
COPY = ["cp", "-rp", "--"]


def prepare(attempt: dict[str, Any]) -> None:
    """Make the directory and copy what the script needs; RefusedError names what cannot be made or copied."""
    directory = attempt["directory"]
    old = os.umask(int(attempt["umask"]))
    try:
        if attempt.get("is_private"):
            os.mkdir(directory, 0o700)
            attempt["made"] = True
        for local, remote in attempt.get("stage_in", ()):
            _copy(_under(attempt["home"], remote), _under(directory, local), "stagein")
    except OSError as error:
        raise RefusedError(f"directory {directory}: {error.strerror}") from None
    finally:
        os.umask(old)


def conclude(attempt: dict[str, Any]) -> str:
    """Copy what the job leaves, and clear up; return what went wrong, if anything."""
    directory = attempt["directory"]
    failed: list[str] = []
    old = os.umask(int(attempt["umask"]))
    try:
        for local, remote in attempt.get("stage_out", ()):
            try:
                _copy(_under(directory, local), _under(attempt["home"], remote), "stageout")
            except RefusedError as refusal:
                failed.append(str(refusal))
    finally:
        os.umask(old)
    if attempt.get("made") and not failed:
        try:
            handle = os.open(os.path.dirname(directory), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            files.remove_tree(os.path.basename(directory), handle)
            os.close(handle)
        except OSError as error:
            failed.append(f"directory {directory}: {error.strerror}")
    return "; ".join(failed)


def _under(directory: str, path: str) -> str:
    return path if path.startswith("/") else f"{directory}/{path}"


def _copy(source: str, target: str, what: str) -> None:
    """Copy a file or a directory as ``cp -rp`` does; the last part of the source may have wildcards."""
    for path in _expanded(source):
        goal = f"{target}/{os.path.basename(path.rstrip('/'))}" if os.path.isdir(target) else target
        try:
            if os.path.samefile(path, goal):
                continue
        except OSError:
            pass
        errors, errors_in = os.pipe2(os.O_CLOEXEC)
        actions = [(os.POSIX_SPAWN_DUP2, errors_in, 2)]
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
        pid = os.posix_spawnp(COPY[0], [*COPY, path, target], environment, file_actions=actions)
        os.close(errors_in)
        text = b""
        while part := os.read(errors, 4096):
            text = (text + part)[:1000]
        os.close(errors)
        if os.waitpid(pid, 0)[1]:
            lines = text.decode("utf-8", "replace").splitlines()
            raise RefusedError(f"{what} {path} to {target}: {lines[0] if lines else 'cp failed'}")


def _expanded(source: str) -> list[str]:
    directory, _, name = source.rpartition("/")
    if not any(letter in name for letter in WILD):
        return [source]
    from fnmatch import fnmatchcase

    try:
        found = [f"{directory}/{each}" for each in sorted(os.listdir(directory or "/")) if fnmatchcase(each, name)]
    except OSError:
        found = []
    return found or [source]  # cp names what is missing
