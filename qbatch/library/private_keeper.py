"""The keeper of a private daemon: it starts it, watches it, and clears up when the owner is gone
for any reason.

``python -m qbatch.library.private_keeper DIRECTORY KEEP ARGUMENT...``: the arguments are those of
``qbatch up``.  Stdin is the lifeline: only the owner holds its other end, and the kernel closes it
even when the owner is killed.  The keeper writes lines to stdout: ``ready``, then ``died CODE
REASON`` if the daemon ends by itself.  There is one way out: it ends the daemon and its jobs and
removes the directory.  It collects orphans (it is their subreaper), so that it can check that no
process is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

SOCKET, STATE, LOG = "s", "state", "log"
"""Names in the directory; the name of the socket is short because its whole path must be."""

START_PATIENCE = 120.0
"""Seconds for the first answer of the daemon."""

STOP_PATIENCE = 10.0
"""Seconds for the daemon to stop in order, and again for it to stop at all."""

GRACE = 2.0
"""Seconds from TERM to KILL for the jobs when everything ends."""

TICK = 0.01


def main(arguments: list[str]) -> int:
    """Keep one daemon until the lifeline breaks; return 0 if nothing is left of it, else 1."""
    directory, keep, *given = arguments
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake, wake_in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_in, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda *_: None)
    command = [
        sys.executable,
        "-m",
        "qbatch",
        "up",
        "--foreground",
        "--state",
        f"{directory}/{STATE}",
    ]
    command += ["--socket", f"{directory}/{SOCKET}", *given]
    log = os.open(
        f"{directory}/{LOG}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
    )
    try:
        daemon = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=directory,
            process_group=0,
            preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGTERM),
        )
    finally:
        os.close(log)
    try:
        if _wait_until_up(daemon, directory, wake):
            _report("ready")
            _watch(daemon, directory, wake)
    finally:
        is_clean = clear_up(directory, daemon)
    if keep != "keep" and not remove(directory):
        is_clean = False
    return 0 if is_clean else 1


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process; do nothing if the C library has no such call."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _report(line: str) -> None:
    with contextlib.suppress(OSError):
        os.write(1, f"{line}\n".encode("utf-8", "replace"))


def _wait_until_up(daemon: subprocess.Popen[bytes], directory: str, wake: int) -> bool:
    """Wait until the daemon listens; return False if it ended or is no longer wanted."""
    deadline = time.monotonic() + START_PATIENCE
    while time.monotonic() < deadline:
        if _listens(f"{directory}/{SOCKET}"):
            return True
        if daemon.poll() is not None:
            _report(f"died {_code(daemon)} {_last_words(directory, daemon)}")
            return False
        if _is_over([0, wake], TICK):
            return False
    _report(f"died 1 the daemon does not answer after {START_PATIENCE:g} s")
    return False


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(path)
        except OSError:
            return False
        return True


def _is_over(handles: list[int], seconds: float | None) -> bool:
    """Wait; return whether the lifeline broke or a signal to end arrived."""
    ready, _, _ = select.select(handles, [], [], seconds)
    # The owner writes nothing to the lifeline, so any event there is its end.  SIGCHLD has no
    # handler and so writes no byte.
    return any(handle in handles[:2] for handle in ready)


def _watch(daemon: subprocess.Popen[bytes], directory: str, wake: int) -> None:
    """Wait until the owner is gone; meanwhile report once if the daemon ended, and collect
    orphans."""
    handles = [0, wake]
    with contextlib.suppress(OSError):
        handles.append(os.pidfd_open(daemon.pid))
    while not _is_over(handles, 1.0):
        if daemon.poll() is not None and len(handles) > 2:
            os.close(handles.pop())
            _report(f"died {_code(daemon)} {_last_words(directory, daemon)}")
        _collect(daemon)


def _code(daemon: subprocess.Popen[bytes]) -> int:
    code = daemon.returncode
    return 128 - code if code < 0 else code


def _last_words(directory: str, daemon: subprocess.Popen[bytes]) -> str:
    try:
        with open(f"{directory}/{LOG}", encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
    except OSError:
        lines = []
    if daemon.returncode < 0:
        return f"the daemon was killed by {signal.Signals(-daemon.returncode).name}"
    return (
        lines[-1].removeprefix("qbatch: ")
        if lines
        else f"the daemon ended with {daemon.returncode}"
    )


def _collect(daemon: subprocess.Popen[bytes] | None) -> None:
    """Collect orphans that ended; the ``Popen`` object collects the daemon itself."""
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if daemon is not None and found.si_pid == daemon.pid and daemon.returncode is None:
                daemon.poll()
            else:
                os.waitpid(found.si_pid, os.WNOHANG)


def clear_up(directory: str, daemon: subprocess.Popen[bytes] | None = None) -> bool:
    """End the daemon of a directory, even one restarted there, and its jobs; return True if no
    process is left."""
    from qbatch.daemon.executors.supervision import processes

    _stop_daemon(directory, daemon)
    _stop_jobs(f"{directory}/{STATE}/run")
    deadline = time.monotonic() + STOP_PATIENCE
    while True:
        _collect(daemon)
        left = processes.descendants({os.getpid()}) if daemon is not None else {}
        if not left or time.monotonic() > deadline:
            return not left
        for pid, start in left.items():
            processes.signal_process(pid, start, signal.SIGKILL)
        time.sleep(TICK)


def _stop_daemon(directory: str, daemon: subprocess.Popen[bytes] | None) -> None:
    """Ask the daemon to end itself and its jobs, then send it TERM, then kill it."""
    handle: int | None = None
    path = f"{directory}/{SOCKET}"
    if _listens(path):
        from qbatch.client import ClientSession
        from qbatch.model.errors import QbatchError
        from qbatch.wire.records import Done, ServerRecord
        from qbatch.wire.requests import ServerStatus, Shutdown

        try:
            with ClientSession(path, timeout=STOP_PATIENCE / 2, patience=0.0) as session:
                handle = os.pidfd_open(session.ask(ServerStatus(), ServerRecord).pid)
                session.ask(Shutdown(is_with_jobs=True), Done)
        except (QbatchError, OSError):  # it does not answer, or it is ending
            if daemon is not None and daemon.poll() is None:
                daemon.terminate()
    elif daemon is not None and daemon.poll() is None:
        daemon.terminate()
    if handle is not None:
        if not select.select([handle], [], [], STOP_PATIENCE)[0]:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.close(handle)
    if daemon is not None:
        try:
            daemon.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def _stop_jobs(root: str) -> None:
    """End the jobs that the daemon left: first ask all of them, then wait for each, kill it and
    remove it."""
    from pathlib import Path

    from qbatch.daemon.executors.process_directory import Alive, RunDirectory

    try:
        names = [name for name in os.listdir(root) if os.path.isdir(f"{root}/{name}")]
    except OSError:
        return
    runs = [RunDirectory(Path(root, name)) for name in names]
    for run in runs:
        with contextlib.suppress(OSError):
            run.send(f"stop {GRACE!r}")
    deadline = time.monotonic() + GRACE + 1.0
    for run in runs:
        with contextlib.suppress(OSError):
            while time.monotonic() < deadline and isinstance(run.look(), Alive):
                time.sleep(TICK)
        run.discard()


def remove(directory: str) -> bool:
    """Remove the directory, in several tries, because a killed process may still write for a
    moment."""
    from qbatch.daemon.executors.supervision import files

    for _ in range(100):
        if files.remove_tree(directory):
            return True
        time.sleep(TICK)
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
