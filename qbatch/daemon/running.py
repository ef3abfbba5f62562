"""The executors of a daemon: those of its configuration, what they find again after a start, what
they report of hosts."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

from qbatch.daemon.commands import link_commands
from qbatch.daemon.core.job import BatchState
from qbatch.daemon.executors.attempt import LOST, Ended, Executor
from qbatch.daemon.restore import RESTORED
from qbatch.daemon.service import Service
from qbatch.daemon.settings import Settings
from qbatch.model.errors import InputError
from qbatch.model.machine import Host
from qbatch.wire.errors import Refusal
from qbatch.wire.requests import HostControl

log = logging.getLogger("qbatch")

OURS = "dask: "
"""Beginning of the comment of a host without a worker: only such a host is brought up when its
worker comes."""


def clusters_of(settings: Settings) -> tuple[tuple[object, ...], ...]:
    """Return the settings that must not change while a daemon runs: its pools of Dask workers, and
    their places."""
    dask = [pool for pool in settings.pools if pool.executor == "dask"]
    return tuple((pool.name, pool.address, pool.directory, pool.timeout) for pool in dask)


class CoreGate:
    """Takes hosts of a pool down and up in the core, by commands of the server (see
    `dask_executor.HostGate`).

    It reads the state from the core each time, so that it repeats what a recovery has undone.
    """

    def __init__(self, service: Service, pool: str) -> None:
        self._service, self._pool = service, pool

    def hosts(self) -> tuple[Host, ...]:
        """Return the hosts of the pool in the configuration in force."""
        return next(
            (pool.hosts for pool in self._service.settings.pools if pool.name == self._pool), ()
        )

    def take_down(self, name: str, why: str) -> None:
        """Take a host down, even if it is closed; an operator's comment stays."""
        is_shut, is_down, comment = self._state_of(name)
        text = f"{OURS}{why}"[:200]
        is_ours = not is_shut or comment.startswith(OURS)
        if not is_down or (is_ours and comment != text):
            self._command(
                HostControl(hosts=(name,), action="down", comment=text if is_ours else None)
            )

    def bring_up(self, name: str) -> None:
        """Bring a host up, unless an operator closed it."""
        is_shut, _, comment = self._state_of(name)
        if is_shut and comment.startswith(OURS):
            self._command(HostControl(hosts=(name,), action="up", comment=""))

    def _state_of(self, name: str) -> tuple[bool, bool, str]:
        core = self._service.core
        if name not in core.host_places:
            return True, True, ""
        number, place = core.host_places[name]
        pool = core.pools[number]
        return place in pool.shut, place in pool.down, pool.host_comments.get(place, "")

    def _command(self, request: HostControl) -> None:
        # It is repeated at the next look, when the state was read from disk.
        if self._service.containment.is_spoiled:
            return
        try:
            self._service.command(request)
        except Refusal as error:
            log.warning("host %s %s: %s", request.hosts[0], request.action, error)


async def begin(
    service: Service, socket_path: str, mode: str, surroundings: dict[str, str]
) -> Executor | None:
    """Make the executor of a service's jobs and let it find running attempts again; None: jobs are
    emulated.

    Raises:
        InputError: scripts cannot run as configured.
    """
    if service.settings.executor != "process":
        return None
    if mode != "real":
        raise InputError(
            "executor process runs scripts for real and needs --time real; use --executor emulated "
            "with other times"
        )
    executor, outbox, store = _make(service), service.outbox, service.store.directory
    outbox.executor = executor
    outbox.scripts = str(service.scripts.directory)
    commands = os.environ.get("QBATCH_BIN", "")
    if not commands:  # links to the PBS commands only, not to this Python
        commands = str(store / "bin")
        try:
            link_commands(commands)
        except (InputError, OSError) as error:
            log.warning("jobs do not find the PBS commands: %s", error)
    outbox.surroundings = {"QBATCH_SOCKET": socket_path, "QBATCH_BIN": commands, **surroundings}
    try:
        await _recover(service, executor)
    except BaseException:
        await executor.close()
        raise
    return executor


def _make(service: Service) -> Executor:
    from qbatch.daemon.executors.process import ProcessExecutor

    root = service.store.directory / "run"
    root.mkdir(mode=0o700, exist_ok=True)
    local = ProcessExecutor(root, service.report)
    pools = [pool for pool in service.settings.pools if pool.executor == "dask"]
    if not pools:
        return local
    from qbatch.daemon.executors.dask_cluster import require_dask

    for pool in pools:
        require_dask(pool.name)
    from qbatch.daemon.executors.dask_executor import DaskExecutor
    from qbatch.daemon.executors.routed import RoutedExecutor

    base = service.store.directory / "dask"
    base.mkdir(mode=0o700, exist_ok=True)
    identity = _identity(base)
    clusters = [
        DaskExecutor(
            pool.address,
            base / pool.name,
            service.report,
            CoreGate(service, pool.name),
            identity=identity,
            directory=pool.directory,
            timeout=pool.timeout / 1e6,
        )
        for pool in pools
    ]
    return RoutedExecutor(local, clusters)


def _identity(base: Path) -> str:
    """Return the name of this store on the workers."""
    # Not a valid name of a pool; the directories of pools are in the same place.
    path = base / ".identity"
    if not path.exists():
        temporary = base / ".identity.tmp"
        temporary.write_text(os.urandom(16).hex(), encoding="ascii")
        temporary.replace(path)
    return path.read_text(encoding="ascii")


async def _recover(service: Service, executor: Executor) -> None:
    core = service.core
    running = [job for pool in core.pools for job in pool.running.values()]
    marker = service.store.directory / RESTORED
    if marker.exists():
        await executor.recover([])
        for job in running:
            service.report(
                Ended(job.file_key, LOST, core.now, "the store was restored from a backup")
            )
        running = []
        marker.unlink()
    made = [service.outbox.attempt_of(core, job) for job in running]
    await executor.recover([attempt for attempt in made if attempt is not None])
    for job in running:
        if job.attempt is None:  # it was lost with its host and waits again
            continue
        # Effects that were committed but perhaps not sent when the daemon ended are sent again; a
        # repetition does no harm.
        if job.present.sizes:
            executor.resize(job.file_key, job.size, job.size / job.prepared.request.procs)
        if job.modified > job.present.started:
            executor.set_walltime(job.file_key, job.prepared.walltime / 1e6)
        if job.state is BatchState.SUSPENDED:
            executor.signal(job.file_key, signal.SIGSTOP)
        elif job.present.pauses:
            executor.signal(job.file_key, signal.SIGCONT)
        if job.ending:
            executor.stop(job.file_key, core.settings.kill_delay / 1e6)
