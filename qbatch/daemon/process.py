"""The process of the daemon: it claims its directory, recovers, listens, serves, and stops in
order."""

from __future__ import annotations

import asyncio
import errno
import functools
import gc
import logging
import os
import resource
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from qbatch.daemon import dispatch, journal_entry, running
from qbatch.daemon.accounting_files import AccountingFiles
from qbatch.daemon.clock import LITTLE, Clock, wall
from qbatch.daemon.collector import spare_the_old
from qbatch.daemon.config import as_toml, parse_config
from qbatch.daemon.connection import ConnectedClient
from qbatch.daemon.core import reservations, state_snapshot, steps
from qbatch.daemon.core.job import BatchState
from qbatch.daemon.core.reconfigure import reconfigure
from qbatch.daemon.core.setting_back import set_back
from qbatch.daemon.core.state import Account, Core, Ending, machine_of
from qbatch.daemon.executors.attempt import SHORTAGES
from qbatch.daemon.own_policies import policies_in, try_out
from qbatch.daemon.service import MOST_CONNECTIONS, Instance, Recovered, Service
from qbatch.daemon.settings import Settings
from qbatch.daemon.snapshots import Snapshots
from qbatch.daemon.sources import TraceSource
from qbatch.daemon.store import StorageError, Store, StoreOccupied
from qbatch.daemon.unread import give_memory_back
from qbatch.daemon.warm import Warming
from qbatch.model.errors import InputError, QbatchError, UsageError
from qbatch.policies.registry import load_policy
from qbatch.results.shown import moment, span
from qbatch.wire.paths import LONGEST_SOCKET

log = logging.getLogger("qbatch")

SILENCE = 60.0
"""Seconds between two lines of the log about the same shortage."""


def passed_sockets() -> list[socket.socket]:
    """Return the listening sockets that systemd passed to this process, and unset the variables
    that describe them."""
    pid, count = os.environ.pop("LISTEN_PID", ""), os.environ.pop("LISTEN_FDS", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or not count.isdigit():
        return []
    handles = range(3, 3 + int(count))  # SD_LISTEN_FDS_START
    for handle in handles:
        os.set_inheritable(handle, False)
    return [socket.socket(fileno=handle) for handle in handles]


class Notifier:
    """Reports the state of the daemon to systemd, if there is one."""

    def __init__(self) -> None:
        self.address = os.environ.pop("NOTIFY_SOCKET", "")
        usec, pid = (
            os.environ.pop("WATCHDOG_USEC", ""),
            os.environ.pop("WATCHDOG_PID", str(os.getpid())),
        )
        self.interval = int(usec) / 2e6 if usec.isdigit() and pid == str(os.getpid()) else 0.0

    def send(self, text: str) -> None:
        """Send lines such as ``READY=1``."""
        if not self.address:
            return
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel,
            suppress(OSError),
        ):
            channel.sendto(text.encode(), address)

    async def watch(self, service: Service) -> None:
        """Feed the watchdog as long as commits succeed: each time after a probe has passed the
        committer."""
        pause = self.interval or 5.0
        while True:
            await asyncio.sleep(pause)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause), service.commit_lock:
                    has_failed = service.failure is not None
                if not has_failed:
                    queued = sum(
                        queue.counts.get(BatchState.QUEUED, 0)
                        for queue in service.core.queues.values()
                    )
                    running = sum(len(pool.running) for pool in service.core.pools)
                    self.send(
                        f"WATCHDOG=1\nSTATUS={queued} queued, {running} running, "
                        f"{service.clock.mode} time"
                    )


class DaemonOptions(msgspec.Struct, kw_only=True):
    """How a daemon is started.

    ``read_settings`` returns the configuration; it is called again on reload.  ``config_name``: its
    file, if any.  ``trace``: the source of jobs that arrive by themselves, if any.
    ``surroundings``: variables that every job gets.
    """

    state: Path
    socket_path: str
    read_settings: Callable[[], Settings]
    config_name: str = ""
    mode: str = "real"
    speed: float = 1.0
    origin: int | None = None
    is_paused: bool = False
    trace: Any = None
    surroundings: dict[str, str] = {}


def most_descriptors() -> int:
    """Raise the limit of descriptors of this process as far as allowed; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            hard = soft
    return hard if 0 < hard < 1 << 20 else 1 << 20


class LoopErrors:
    """Logs what a callback of the event loop raised; a shortage of descriptors or memory is one
    line, now and then."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log one exception (the signature is asyncio's)."""
        error, message = context.get("exception"), context.get("message", "in the event loop")
        if not (isinstance(error, OSError) and error.errno in SHORTAGES):
            log.error("%s: %s", message, error, exc_info=error)
        elif loop.time() >= self._next:
            self._next = loop.time() + SILENCE
            log.error("%s: %s; it is tried again every second", message, error.strerror)


async def recover(store: Store, settings: Settings) -> Recovered:
    """Return the state that the store holds.

    The journal is replayed under the settings with which it was written.

    Raises:
        StorageError: the store is damaged.
    """
    kept = await store.meta("settings")
    old = parse_config(kept, "the settings in the store") if kept else settings
    snapshot = store.snapshot()
    try:
        core = (
            state_snapshot.load(snapshot, old, load_policy)
            if snapshot is not None
            else Core(old, load_policy)
        )
    except InputError as error:
        raise StorageError(f"{store.directory}: {error}") from error
    records: list[Account] = []
    touched: list[str] = []
    for number, entries in await store.entries():
        for data in entries:
            try:
                entry = journal_entry.read(data)
                journal_entry.give(core, entry)
            except Exception as error:
                what = (
                    error if isinstance(error, QbatchError) else f"{type(error).__name__}: {error}"
                )
                raise StorageError(
                    f"{store.path}: commit {number} cannot be applied again: {what}; restore a "
                    "backup with: "
                    f"qbatch restore FILE --state {store.directory}"
                ) from error
            if entry.kind == "p":
                touched.clear()
            elif entry.request is not None:
                touched += journal_entry.jobs_of(core, entry.request)
            records += [effect for effect in core.take_effects() if isinstance(effect, Account)]
    live = dict.fromkeys(name for name in touched if core.is_live(name))
    return Recovered(core, bool(kept), records, tuple(live))


async def finish_works(core: Core, store: Store, records: list[Account]) -> None:
    """Finish the commands of several steps that were under way when the daemon was killed; note
    their accounting.

    Raises:
        StorageError: the result cannot be written.
    """
    while core.works:
        entry = journal_entry.step(core.now)
        steps.go_on(core)
        effects = core.take_effects()
        await store.commit([entry], [effect for effect in effects if isinstance(effect, Ending)])
        records += [effect for effect in effects if isinstance(effect, Account)]


def listen(path: str) -> socket.socket:
    """Return a listening socket at a path that only this user may use; a stale one is replaced.

    Raises:
        InputError: the path is too long, or another file is there.
        Occupied: a daemon listens there already.
    """
    if len(os.fsencode(path)) > LONGEST_SOCKET:
        raise InputError(
            f"socket {path}: {len(os.fsencode(path))} bytes; the kernel takes {LONGEST_SOCKET}: "
            "set QBATCH_SOCKET to a "
            f"shorter path, for example /tmp/qbatch-{os.getuid()}/qbatch.sock"
        )
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise InputError(
                f"socket {path}: something else is there; remove it or set QBATCH_SOCKET"
            )
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as probe:
            probe.setblocking(False)
            # EAGAIN: its queue of connections is full.
            if probe.connect_ex(path) in (0, errno.EAGAIN):
                raise StoreOccupied(
                    f"another daemon listens at {path}; stop it with: qbatch down, or give this "
                    "one a directory of its own "
                    "with --state DIR"
                )
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    old_mask = os.umask(0o177)
    try:
        listener.bind(path)
    except OSError as error:
        listener.close()
        raise InputError(
            f"socket {path}: {error.strerror}; set QBATCH_SOCKET to a path that can be made"
        ) from error
    finally:
        os.umask(old_mask)
    return listener


@contextmanager
def _named_failures(directory: Path) -> Iterator[None]:
    """Turn each ``OSError`` into a ``StorageError`` that names the file, or the directory if the
    file is not known."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{error.filename or directory}: {error.strerror or error}") from error


async def serve(options: DaemonOptions) -> int:
    """Run a daemon until it is asked to stop; return its exit code.

    Raises:
        QbatchError: it cannot start, or had to stop.
    """
    store = Store(options.state)
    store.claim()
    try:
        settings = options.read_settings()
        with _named_failures(options.state):
            await store.open()
        warming = Warming([pool.policy for pool in settings.pools])
        warming.before_the_first_pass(store.weight)
        gc.disable()
        recovered = await recover(store, settings)
        core, was_there = recovered.core, recovered.was_there
        gc.enable()
        is_set_back = (
            was_there and options.mode == "real" and await _set_back(core, store, recovered.records)
        )
        is_other = not was_there or is_set_back or as_toml(core.settings) != as_toml(settings)
        if was_there and is_other:
            await finish_works(core, store, recovered.records)
            steps.whole(reconfigure(core, settings))
        core.settings = settings
        first = (
            options.trace.next_instant()
            if options.trace is not None and options.mode != "real"
            else None
        )
        clock = Clock(
            options.mode, options.speed, first if options.origin is None else options.origin
        )
        if was_there:
            if first is not None and first < core.now and not core.log_arrived:
                raise InputError(
                    f"the clock of {options.state} stands at {moment(core.now)}, after the log's "
                    f"first job ({moment(first)}): "
                    "its jobs would arrive at once; give it a store of its own with --state DIR"
                )
            clock.start_at(core.now)
        clock.is_paused = options.is_paused
        if options.trace is not None:
            options.trace.attach(core)
        return await _Daemon(options, core, store, clock, warming).run(
            recovered.records, must_write=is_other
        )
    finally:
        await store.close()  # its thread would keep the process alive


async def _set_back(core: Core, store: Store, records: list[Account]) -> bool:
    """Set a state back if its latest instant is far ahead of the machine's clock; return whether it
    was."""
    ahead = core.now - wall()
    if ahead <= LITTLE:
        return False
    await finish_works(core, store, records)
    ahead, was = core.now - wall(), moment(core.now)
    try:
        set_back(core, ahead)
    except QbatchError as error:
        log.warning(
            "the clock of %s stays at %s, ahead of the machine's: %s",
            store.directory,
            moment(core.now),
            error,
        )
        return False
    log.warning(
        "the clock of %s stood at %s, ahead of the machine's, which was set back: all instants are "
        "%s earlier from now on, and "
        "starts are promised anew",
        store.directory,
        was,
        span(ahead),
    )
    return True


class _Daemon:
    """The surroundings of a service: sockets, signals, the executor, snapshots."""

    def __init__(
        self, options: DaemonOptions, core: Core, store: Store, clock: Clock, warming: Warming
    ) -> None:
        self.options = options
        self.warming = warming
        self.store = store
        instance = Instance(
            started=time.time_ns() // 1000,
            socket=options.socket_path,
            config=options.config_name,
            is_compiled=warming.is_over,
            reload=self.reload,
            most_connections=min(MOST_CONNECTIONS, most_descriptors() // 2),
        )
        self.service = Service(core, store, clock, self._rebuild, instance, options.trace)
        self.snapshots = Snapshots(self.service)
        self.notify = Notifier()
        self.server: asyncio.Server | None = None
        self.is_activated = False

    async def run(self, records: list[Account], *, must_write: bool) -> int:
        service, store, options = self.service, self.store, self.options
        with _named_failures(store.directory):
            service.outbox.accounting = AccountingFiles(store.directory / "accounting")
            service.outbox.accounting.write_missing(records)
            if must_write:
                await self.snapshots.now(is_needed=True)
            self.warming.before_the_first_pass(len(service.core.jobs))
            executor = await running.begin(
                service, options.socket_path, options.mode, options.surroundings
            )
        try:
            await self._listen()
        except BaseException:
            if executor is not None:
                await executor.close()
            raise
        # The recovered state stays; the memory that reading it took goes back to the system.
        spare_the_old()
        give_memory_back()
        log.info(
            "serving %s as %s from %s", options.socket_path, service.settings.name, store.directory
        )
        for pool in service.core.pools:
            for note in reservations.past(machine_of(pool.settings), service.now):
                log.warning("pool %s: %s", pool.settings.name, note)
        self.notify.send(f"READY=1\nSTATUS={len(service.core.jobs)} jobs")

        async def begin_what_if() -> None:
            async with service.quiet():
                service.what_if.begin_again(service.settings.shadows)

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                service.fail(error)

        warming = self.warming.run(
            service.is_busy, lambda: service.commits, lambda: len(service.core.jobs)
        )
        background = [
            asyncio.create_task(each)
            for each in (
                self.notify.watch(service),
                self.snapshots.keep(),
                begin_what_if(),
                warming,
            )
        ]
        for task in background:
            task.add_done_callback(ended)
        try:
            await service.run()
            await self._stop_listening()
            await self.snapshots.now()
            log.info("stopped %s", service.stop_reason)
            return 0
        finally:
            self.notify.send("STOPPING=1")
            for task in background:
                task.cancel()
            service.what_if.end()
            await self._stop_listening()
            if executor is not None:
                await executor.close()
            await store.close()

    async def _rebuild(self) -> Recovered:
        """Read the state from disk, under the settings in force."""
        settings = self.service.settings
        recovered = await recover(self.store, settings)
        if as_toml(recovered.core.settings) == as_toml(settings):
            recovered.core.settings = settings
        if self.options.trace is not None:
            self.options.trace.attach(recovered.core)
        return recovered

    async def _listen(self) -> None:
        """Handle signals and listen at the socket."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.service.stop, f"on {signal.Signals(number).name}")
        loop.add_signal_handler(signal.SIGHUP, lambda: loop.create_task(self._reload_on_signal()))
        loop.set_exception_handler(LoopErrors())
        given = passed_sockets()
        self.is_activated = bool(given)
        listener = given[0] if given else listen(self.options.socket_path)
        extra: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
        serve_client = functools.partial(
            ConnectedClient, self.service.clients, functools.partial(dispatch.handle, self.service)
        )
        self.server = await loop.create_unix_server(
            serve_client, sock=listener, backlog=1024, **extra
        )

    async def _stop_listening(self) -> None:
        if self.server is None:
            return
        server, self.server = self.server, None
        server.close()
        for client in list(self.service.clients):
            client.close()
        if not self.is_activated:
            with suppress(OSError):
                os.unlink(self.options.socket_path)

    async def _reload_on_signal(self) -> None:
        self.notify.send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            log.info("%s", await self.reload())
        except QbatchError as error:
            log.error("reload: %s; the old configuration stays", error)
        self.notify.send("READY=1")

    async def reload(self) -> str:
        """Read the configuration again and accept it as a whole.

        Raises:
            QbatchError: it cannot be used; the old one stays in force.
        """
        try:
            service = self.service
            for policy in policies_in(Path(self.options.config_name)):
                try:
                    await try_out(policy)  # while clients are served; it is not tried again below
                except UsageError as error:
                    raise InputError(f"{self.options.config_name}: {error}") from None
            new = self.options.read_settings()
            old = service.core.settings
            if as_toml(new) == as_toml(old):
                return "the configuration has not changed"
            if (
                new.executor != old.executor
                or new.name != old.name
                or running.clusters_of(new) != running.clusters_of(old)
            ):
                raise InputError(
                    "executors, Dask clusters and the server's name change only when the daemon is "
                    "started anew"
                )
            if service.is_full:
                raise InputError(
                    f"the disk of {self.store.directory} is full: the old configuration stays "
                    "until there is space"
                )
            await service.reconfigure(new)
            service.event_stream.announce(service.core, "queue", "the configuration was read again")
            before, after = set(as_toml(old).splitlines()), set(as_toml(new).splitlines())
            changed = [f"- {line}" for line in sorted(before - after)] + [
                f"+ {line}" for line in sorted(after - before)
            ]
            return "\n".join(changed) or "the order of entries has changed"
        except QbatchError as error:
            raise type(error)(f"{error}; the old configuration stays in force") from error


def run(options: DaemonOptions) -> int:
    """Run a daemon in this process; return its exit code."""
    # The thread of the database waits for the interpreter after each commit; the default of five
    # milliseconds is too long.
    sys.setswitchinterval(0.0005)
    # Jobs, records and texts form no reference cycles, so there is little for the collector to
    # find.
    gc.set_threshold(10_000, 1, 10)
    return asyncio.run(serve(options))


_LATEST_START = 1 << 36
"""Seconds since 1970 at which a log may begin at the latest (more than a thousand years); a later
start is an error in it."""


def trace_of(workload: Any, origin: int | None) -> TraceSource:
    """Return the source of a prepared workload; its first job arrives at the origin (None: on the
    day that the log has).

    Without an origin, second 0 of the log is its ``UnixStartTime``, so that every client shows the
    dates of the log.
    """
    if origin is None:
        begin = workload.clock.unix_start or 0
        return TraceSource(workload, begin * 1_000_000 if 0 <= begin < _LATEST_START else 0)
    return TraceSource(workload, origin - (int(workload.submit[0]) if len(workload) else 0))
