"""The work of a supervisor: claim, start the script, keep its walltime, obey commands, clear up,
record."""

# ruff: noqa: SIM105 (contextlib is not small)
from __future__ import annotations

import os
import select
import sys
import time

from . import files, processes, script, usage
from .outputs import (
    OutputTarget,
    RefusedError,
    deliver,
    discard,
    open_outputs,
    targets_of,
    write_message,
)
from .processes import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FENCED = 3
"""Exit code of a supervisor that found the attempt taken."""

NOT_STARTED, WALLTIME = -1, -29
LOCK_PATIENCE = 1.0
KILL_TICK, KILL_PATIENCE = 0.05, 60.0
LEAF_TRIES = 20
PR_SET_CHILD_SUBREAPER = 36


def main(argv: list[str]) -> int:
    """Run the attempt of a run directory, unless another process has it."""
    # What the daemon may have left open, except 0, 1 and 2.
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                os.close(int(name))
            except OSError:
                pass
    path = os.path.abspath(argv[1])
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    os.umask(0o077)
    lock = files.take_lock(directory, LOCK_PATIENCE)
    if lock is None:
        return FENCED
    key, token = path.rpartition("/")[2], os.environ.get(processes.MARKER, "")
    place = processes.leaf_path(key, token)
    start = processes.start_of(os.getpid())
    claim = {
        "pid": os.getpid(),
        "start": start,
        "boot": processes.boot_id(),
        "token": token,
        "leaf": place,
    }
    if not files.make_claim(directory, claim):
        return FENCED
    Supervision(path, directory, key, token, place).run()
    return 0


class Supervision:
    """One attempt, from its claim to its exit record."""

    def __init__(self, path: str, directory: int, key: str, token: str, place: str) -> None:
        self.path, self.directory, self.key, self.token, self.leaf = (
            path,
            directory,
            key,
            token,
            place,
        )
        self.main = 0  # process number of the script, which is its session too
        self.status: int | None = None  # its wait status, once it has ended
        self.failure = b""
        self.alone = False  # no process of the job is left
        # Why all its processes were asked to end: "stop", "walltime" or another limit.
        self.reason = ""
        self.kill_at: float | None = None
        self.was_terminated = False  # TERM was sent: what outlives the shell has its grace
        self.started_at = self.ran_before = self.running_since = 0.0
        self.suspended = False
        # Its processors as a part of those asked for: its walltime runs at this rate.
        self.share = 1.0
        self.collected = 0.0  # processor seconds of the processes that have ended
        self.meter = usage.Meter({}, "", 0.0)
        self.handles = -1, -1  # the output and the error
        self.control_read = 0  # bytes of the control file that are read
        self.attempt: dict[str, Any] = {}  # once it has its files
        self.early: list[int] = []  # signals that came before the script
        self.excess = ""  # the message about the limit that was exceeded
        self.targets: list[OutputTarget] = []
        self.job_id = ""

    def run(self) -> None:
        """Run the script and record how it ended, whatever happens."""
        try:
            files.reserve_exit(self.directory)
            self._prepare()
            if self.reason:
                self._finish(256 + signal.SIGTERM, "stopped before the script was started")
                return
        except (RefusedError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            self._finish(
                NOT_STARTED,
                str(error)
                if isinstance(error, RefusedError)
                else f"{type(error).__name__}: {error}",
            )
            return
        try:
            self._start()
            for number in self.early:
                self._signal(number)
            self._watch()
            self._wait(0)  # whether it was executed may be unread
        except Exception as error:
            why = f"supervisor: {type(error).__name__}: {error}"
            write_message(self.handles[1], why)
            give_up = time.monotonic() + KILL_PATIENCE
            while not self.alone and time.monotonic() < give_up:
                self._kill()
                time.sleep(KILL_TICK)
                self._reap()
            self._finish(self._code() if self.main else NOT_STARTED, why)
            return
        code, why = self._code(), "" if self.alone else "some processes of the job cannot be killed"
        if self.failure:
            why = self.failure.decode("utf-8", "replace")
            write_message(self.handles[1], why)
            self._finish(NOT_STARTED, why)
        elif self.reason in ("", "stop"):
            if code in script.NOT_FOUND and self.attempt["script"] is not None:
                missing = script.missing_interpreter(self.attempt, self.path)
                if missing:
                    write_message(self.handles[1], missing)
                why = why or missing
            self._finish(code, why)
        else:
            self._finish(usage.CODES.get(self.reason, WALLTIME), why or self.excess)

    # Before the script

    def _prepare(self) -> None:
        """Prepare all that the script needs; an exception names what it cannot have."""
        self._open_control()
        # Orphans of the job become our children: so we find all of them, and none is left when we
        # have no child.
        try:
            import ctypes

            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        except (ImportError, OSError, AttributeError):  # pragma: no cover
            pass
        try:
            attempt: dict[str, Any] = files.parse_json(files.read_text(files.SPEC, self.directory))  # type: ignore[assignment]
            self.walltime, self.grace = attempt["walltime"], float(attempt["grace"])
            os.umask(int(attempt["umask"]))
            output, error, join = (str(attempt[name]) for name in ("output", "error", "join"))
            self.job_id = str(attempt["job_id"])
        except (ValueError, TypeError, KeyError) as damage:
            raise RefusedError(f"spec.json is damaged: {damage}") from None
        try:
            self.targets = targets_of(output, error, join, str(attempt.get("direct", "")))
            self.handles = open_outputs(self.targets, self.directory)
        finally:
            os.umask(0o077)
        self.umask, self.share = int(attempt["umask"]), float(attempt.get("share", 1.0))
        script.write_job_files(self.directory, attempt)
        self.attempt = attempt
        try:
            script.stage_in(attempt)
        except RefusedError as refusal:
            write_message(self.handles[1], str(refusal))
            raise
        if self.leaf and not processes.make_leaf(self.leaf):
            self.leaf = ""
        self._read_control()

    def _open_control(self) -> None:
        """Open what wakes the loop, before the control file is read: signals, and the FIFO of the
        executor."""
        try:
            os.mkfifo(files.WAKE, 0o600, dir_fd=self.directory)
        except FileExistsError:
            pass
        self.wake = os.open(
            files.WAKE, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=self.directory
        )
        self.control = os.open(
            files.CONTROL, os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=self.directory
        )
        self.signals, signals_in = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(signals_in, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        for number in (
            signal.SIGHUP,
            signal.SIGUSR1,
            signal.SIGUSR2,
            signal.SIGPIPE,
            signal.SIGALRM,
        ):
            signal.signal(number, signal.SIG_IGN)
        self.poll = select.poll()
        self.poll.register(self.wake, select.POLLIN)
        self.poll.register(self.signals, select.POLLIN)

    def _start(self) -> None:
        """Fork the child that becomes the script."""
        attempt, working = self.attempt, self.attempt["directory"]
        try:
            os.chdir(working)
        except (OSError, ValueError) as error:
            os.chdir("/")
            why = getattr(error, "strerror", None) or error
            write_message(self.handles[1], f"working directory {working}: {why}; the job runs in /")
            working = "/"
        environment = {
            "PBS_NODEFILE": f"{self.path}/{files.NODES}",
            "PBS_JOBDIR": working,
            "TMPDIR": f"{self.path}/{files.TEMPORARY}",
            "QBATCH_ALLOCATION": f"{self.path}/{files.ALLOCATION}",
            **attempt["environment"],
            processes.MARKER: self.token,
        }
        command = script.command_of(attempt, self.path, environment)
        given = script.open_input(command.input)
        self.report, report_in = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.poll.register(self.report, select.POLLIN)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        os.umask(self.umask)
        self.main = os.fork()
        if self.main == 0:
            script.become(command, environment, (given, *self.handles), self.leaf, report_in)
        os.umask(0o077)
        self.running_since = time.monotonic()
        self.meter = usage.Meter(attempt.get("limits", {}), self.leaf, self.running_since)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.chdir("/")
        os.close(report_in)
        os.close(given)

    # While it runs

    def _watch(self) -> None:
        """Supervise the job until no process of it is left."""
        give_up: float | None = None
        while True:
            self._wait(int(KILL_TICK * 1000) if give_up is not None else self._time_left())
            self._read_control()
            self._reap()
            if self.alone:
                return
            now = time.monotonic()
            if not self.reason and self.status is None:
                self._keep_limits(now)
            over = self.status is not None and not self.was_terminated
            if over or (self.kill_at is not None and now >= self.kill_at):
                give_up = give_up or now + KILL_PATIENCE
                self._kill()
                if now >= give_up:  # it waits in the kernel, for example for a dead file server
                    return

    def _keep_limits(self, now: float) -> None:
        """Look at what the job uses if it is time, and end it if that is too much."""
        exceeded = excess = ""
        if now >= self.meter.due and not self.suspended:
            exceeded, excess = self.meter.look(now, self.collected)
            # For questions while the job runs: in place, because it is short and need not survive
            # the machine.
            used = files.to_json(self.meter.used()).encode("ascii").ljust(200)
            files.write_if_possible(files.USED, used, self.directory, os.O_CREAT)
        if self.walltime is not None and self._ran(now) >= self.walltime:
            exceeded, excess = "walltime", usage.words("walltime", self._ran(now), self.walltime)
        if exceeded:
            self.excess = excess
            try:
                os.write(self.handles[1], f"=>> PBS: job killed: {excess}\n".encode("ascii"))
            except OSError:
                pass
            self._end(exceeded, self.grace)

    def _time_left(self) -> int | None:
        """Return the milliseconds until something is due; None if only an event can happen."""
        now = time.monotonic()
        if self.kill_at is not None:
            left = self.kill_at - now
        elif self.suspended:
            return None
        else:
            left = self.meter.due - now
            if self.walltime is not None:
                left = min(left, (self.walltime - self._ran(now)) / self.share)
        # A day at most: the kernel takes 31 bits.
        return min(86_400_000, max(1, int(left * 1000) + 1))

    def _wait(self, timeout: int | None) -> None:
        """Sleep until something happens, or for so many milliseconds."""
        for handle, _ in self.poll.poll(timeout):
            try:
                text = os.read(handle, 4096)
            except BlockingIOError:
                continue
            if handle == self.report:
                self._note_execution(text)
            elif handle == self.signals and (signal.SIGTERM in text or signal.SIGINT in text):
                self._end("stop", self.grace)

    def _note_execution(self, text: bytes) -> None:
        """Note that the script is executed (the pipe closed), or why it could not be."""
        if text:
            self.failure += text
            return
        self.poll.unregister(self.report)
        os.close(self.report)
        if self.failure:
            return
        self.started_at = time.time()
        start = processes.start_of(self.main)
        record = {
            "pid": self.main,
            "start": start,
            "session": self.main,
            "at": int(self.started_at * 1_000_000),
        }
        try:
            files.replace(files.STARTED, files.to_json(record), self.directory)
        except OSError:
            return  # a full disk: the exit record contains it too
        files.write_if_possible(
            f"../{files.EVENTS}", f"{self.key}\n".encode("ascii"), self.directory, os.O_NONBLOCK
        )

    def _read_control(self) -> None:
        """Obey the commands that the executor wrote since we last looked."""
        while True:
            text = os.pread(self.control, 65536, self.control_read)
            whole = text[: text.rfind(b"\n") + 1]
            if not whole:
                return
            self.control_read += len(whole)
            for line in whole.decode("ascii", "replace").splitlines():
                verb, _, value = line.partition(" ")
                try:
                    if verb == "stop":
                        self._end("stop", max(0.0, float(value)))
                    elif verb == "signal":
                        self._signal(int(value))
                    elif verb == "resize":
                        procs, _, share = value.partition(" ")
                        self._resize(int(procs), float(share))
                    elif verb == "walltime":
                        self.walltime = float(value)
                except ValueError:
                    continue

    def _reap(self) -> None:
        """Collect the processes that ended; note the script's own status, and whether any process
        is left."""
        while True:
            try:
                pid, status, spent = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self.alone = True
                return
            if pid == 0:
                return
            self.collected += spent.ru_utime + spent.ru_stime
            self.meter.note_ended(self.collected, spent.ru_maxrss * 1024)
            if pid == self.main:
                self.status = status
                self._pause()  # the walltime is that of the script
                if self.was_terminated and self.kill_at is None:
                    self.kill_at = time.monotonic() + self.grace

    # What is done to it

    def _find(self) -> dict[int, int]:
        """Return the processes of the job: our descendants, with the orphans."""
        return processes.descendants({os.getpid()})

    def _signal(self, number: int) -> None:
        """Signal all processes of the job.  SIGSTOP stops its walltime too, until SIGCONT.

        The shell of the job gets the signal too.  If it dies of it, the job is over, as in OpenPBS;
        after TERM, what still runs has its grace.
        """
        if not self.main:
            self.early.append(number)
        if not self.main or self.status is not None:
            return
        if number == signal.SIGSTOP:
            self._pause()
        elif number == signal.SIGCONT and self.suspended:
            self.running_since, self.suspended = time.monotonic(), False
        self.was_terminated |= number == signal.SIGTERM
        if number in signal.valid_signals():
            processes.signal_all(self._find, number)

    def _resize(self, procs: int, share: float) -> None:
        """Write down the job's new number of processors, then send SIGWINCH, which a program
        ignores unless it handles it."""
        if not 0 < share <= 1:
            return
        if not self.suspended and self.main:
            now = time.monotonic()
            self.ran_before, self.running_since = self._ran(now), now
        self.share = share
        try:
            files.replace(files.ALLOCATION, script.allocation_text(procs), self.directory)
        except OSError as error:
            # The log of the attempt; it runs on as it is.
            sys.stderr.write(f"{files.ALLOCATION}: {error.strerror}\n")
            return
        if self.main and self.status is None:
            processes.signal_all(self._find, signal.SIGWINCH)

    def _pause(self) -> None:
        """Stop the clock of the walltime."""
        self.ran_before, self.suspended = self._ran(time.monotonic()), True

    def _ran(self, now: float) -> float:
        """Return the used seconds of the walltime, as if the job had the processors that it asked
        for."""
        return (
            self.ran_before
            if self.suspended
            else self.ran_before + (now - self.running_since) * self.share
        )

    def _end(self, reason: str, grace: float) -> None:
        """Send TERM to all processes now, KILL when the grace is over.  If called again, the
        shorter grace counts."""
        kill_at = time.monotonic() + grace
        self.kill_at = kill_at if self.kill_at is None else min(kill_at, self.kill_at)
        if self.reason:
            return
        self.reason, self.was_terminated = reason, True
        if self.main and self.status is None:
            processes.signal_all(self._find, signal.SIGTERM)
            processes.signal_all(self._find, signal.SIGCONT)  # a stopped process cannot end

    def _kill(self) -> None:
        """Kill all processes; it is called again until none is left."""
        if self.leaf:
            processes.kill_leaf(self.leaf)
        processes.kill_all(self._find)

    # After it

    def _code(self) -> int:
        """Return the script's status as PBS writes it."""
        if self.status is None:
            return 256 + signal.SIGKILL
        return (
            256 + os.WTERMSIG(self.status)
            if os.WIFSIGNALED(self.status)
            else os.WEXITSTATUS(self.status)
        )

    def _finish(self, status: int, why: str) -> None:
        """Clear up and write the exit record; wait while the disk is full, but not if the directory
        was deleted."""
        self.meter.note(usage.group_time(self.leaf), 0, 0)
        for _ in range(LEAF_TRIES):  # the group may still contain for a moment what was just killed
            if not self.leaf or processes.remove_leaf(self.leaf):
                break
            time.sleep(KILL_TICK)
        files.remove_tree(files.TEMPORARY, self.directory)
        if status == 0:
            discard(self.targets, self.directory, str(self.attempt.get("remove", "")))
        undelivered = deliver(self.targets, self.directory, self.key, self.job_id)
        why = "; ".join(filter(None, (why, script.stage_out(self.attempt) if self.attempt else "")))
        used: dict[str, object] = {}
        if self.main and not self.failure:
            used = {**self.meter.used(), "walltime": round(self._ran(time.monotonic()), 6)}
        record: dict[str, object] = {
            "status": status,
            "at": int(time.time() * 1_000_000),
            "why": why,
            "used": used,
        }
        if undelivered:
            record["undelivered"] = undelivered
        if self.started_at:
            record |= {"session": self.main, "started": int(self.started_at * 1_000_000)}
        while True:
            try:
                files.write_exit(self.directory, record)
                return
            except OSError as error:
                if os.fstat(self.directory).st_nlink == 0:
                    return
                print(
                    f"qbatch supervisor: exit record of {self.key}: {error}; trying again",
                    file=sys.stderr,
                )
                time.sleep(1.0)
