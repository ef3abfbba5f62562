"""``qbatch up``: start the daemon; ``qbatch down``: stop it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from qbatch.cli.console import talk
from qbatch.cli.which_daemon import STATE
from qbatch.model.errors import InputError, QbatchError, UsageError

if TYPE_CHECKING:
    from qbatch.daemon.settings import Pool, Settings
    from qbatch.model.machine import Machine
    from qbatch.workloads.network import Network


def up(
    config: Path | None = typer.Option(None, "--config", help="Configuration file (TOML)."),
    state: Path | None = STATE,
    socket: str | None = typer.Option(None, "--socket", help="Socket on which to listen."),
    time_: str = typer.Option(
        "real", "--time", help="Clock: real, x60 (scaled), virtual or virtual:x100."
    ),
    origin: str | None = typer.Option(
        None, "--origin", help="Start of scaled or virtual time, in seconds."
    ),
    executor: str | None = typer.Option(
        None, "--executor", help="process or emulated, instead of the configured one."
    ),
    policy: str | None = typer.Option(
        None, "--policy", "-p", help="Policy of all pools, instead of the configured one."
    ),
    trace: Path | None = typer.Option(None, "--trace", help="Workload log to submit from."),
    source: str | None = typer.Option(
        None, "--source", help="Model to submit from, such as closed:N=16."
    ),
    seed: int = typer.Option(0, "--seed", min=0, help="Seed of the draws of --source."),
    procs: int | None = typer.Option(
        None, "--procs", help="One host with this many processors, instead of the pools."
    ),
    machine: str | None = typer.Option(
        None,
        "--machine",
        metavar="FILE",
        help="Machine file (TOML), or origin2000, instead of the pools.",
    ),
    first: int | None = typer.Option(None, "--first", help="Take only the first jobs of the log."),
    paused: bool = typer.Option(False, "--paused", help="Start with the clock paused."),
    foreground: bool = typer.Option(False, "--foreground", help="Stay in the foreground."),
) -> None:
    """Start the daemon."""
    import logging

    from qbatch.daemon.clock import parse_time
    from qbatch.wire import paths

    mode, speed = parse_time(time_)
    state_path = Path(os.path.abspath(paths.state_directory()))
    socket_text = socket or paths.personal_socket_path()
    config_path = config or (paths.config_path() if paths.config_path().exists() else None)
    network = _network(source, trace, first, seed)

    def read() -> Settings:
        pool, name = _pool(procs, machine), policy
        # The network's own hosts, unless others are asked for.
        if network is not None and config_path is None:
            from qbatch.daemon.settings import pool_on

            pool, name = (
                pool or pool_on(network.machine(), "main", "taskqueues"),
                policy or "taskqueues",
            )
        found = _settings(
            config_path,
            executor,
            name,
            pool,
            mode,
            has_trace=network is not None or trace is not None,
        )
        if network is not None and found.executor != "emulated":
            raise UsageError(
                f"--source {network.name}: its jobs have no scripts; run it with --executor "
                "emulated"
            )
        return found

    if not foreground:
        talk(_into_background(state_path, socket_text))
        if socket is not None:
            talk(f"to talk to it: export QBATCH_SOCKET={shlex.quote(os.path.abspath(socket))}")
        elif state is not None:
            place = shlex.quote(os.path.abspath(state))
            talk(
                f"to talk to it: export QBATCH_STATE={place}, or for one command: qbatch --state "
                f"{place} status"
            )
        else:
            talk("try: echo 'sleep 5; hostname' | qsub; qstat; qbatch status; qbatch down")
        if machine is not None or config_path is not None:
            found = read()
            _note_classes(found)
            _note_past(found, None if origin is None else float(origin))
        return
    from qbatch.daemon import process

    workload = (
        _workload(trace, first, _machine(config_path, procs, machine))
        if trace is not None
        else None
    )
    if workload is not None and config_path is None:
        # A queue of the log is none of the built-in queues, even with the same name.
        workload = workload.changed(queue_names={})
        if procs is None and machine is None:
            procs = workload.procs_total
    _note_classes(read())
    try:
        begins = None if origin is None else round(float(origin) * 1e6)
    except ValueError:
        raise UsageError(f"--origin {origin}: write a number of seconds") from None
    submits_from = begins if begins is not None or mode != "real" else time.time_ns() // 1000
    submitted: Any = None
    if network is not None:
        from qbatch.daemon.sources import ClosedNetworkSource

        submitted = ClosedNetworkSource(network, seed, submits_from or 0)
    elif workload is not None:
        submitted = process.trace_of(workload, submits_from)
    options = process.DaemonOptions(
        state=state_path,
        socket_path=os.path.abspath(socket_text),
        read_settings=read,
        config_name=str(config_path or "built-in"),
        mode=mode,
        speed=speed,
        origin=begins,
        is_paused=paused,
        trace=submitted,
    )
    paths.make_socket_directory(options.socket_path)
    # Do not report a failed log line with a traceback, which would fail too.
    logging.raiseExceptions = False
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    raise typer.Exit(process.run(options))


def _network(
    source: str | None, trace: Path | None, first: int | None, seed: int
) -> Network | None:
    from qbatch.workloads.network import read_network

    if source is None:
        if seed:
            raise UsageError("--seed needs a --source; leave it out")
        return None
    if trace is not None:
        raise UsageError("--trace and --source both submit jobs; leave one out")
    if first is not None:
        raise UsageError("--first needs a --trace; a --source submits jobs for as long as it runs")
    network = read_network(source)
    if network.error:
        raise UsageError(
            f"--source {source}: a live job is ended at its walltime, so that estimates below the "
            "demands cut tasks short; leave "
            "E out (qbatch replay --source takes it)"
        )
    return network


def _machine(config: Path | None, procs: int | None, name: str | None) -> Machine | None:
    """Return the machine on which a log runs; None for the machine of the log's header."""
    from qbatch.daemon.config import read_config
    from qbatch.model.machine import one_host

    if procs is not None:
        return one_host(procs)
    pool = _pool(procs, name)
    if pool is None and config is not None:
        settings = read_config(config)
        queue = next(each for each in settings.queues if each.name == settings.default_queue)
        pool = settings.pool_of(queue)
    return None if pool is None else pool.machine


def _workload(path: Path, first: int | None, machine: Machine | None) -> Any:
    from qbatch.model.machine import one_host
    from qbatch.results.run_words import header_notes, missing_estimates_of
    from qbatch.simulation.prepare import Options as PrepareOptions
    from qbatch.simulation.prepare import choose_procs, prepare
    from qbatch.workloads import read_log

    log = read_log(str(path))
    work = prepare(log, machine or one_host(choose_procs(log, None)), PrepareOptions(first=first))
    for note in header_notes(log.header):
        talk(f"note: {note}")
    for reason, count in work.skipped.items():
        talk(f"note: {count} jobs of the log skipped: {reason.replace('_', ' ')}")
    if work.estimates_missing:
        talk(f"note: {missing_estimates_of(work.estimates_missing, len(work))}")
    return work


def _pool(procs: int | None, machine: str | None) -> Pool | None:
    """Return the pool that options ask for instead of the configured ones."""
    from qbatch.daemon.settings import Pool, check_host_names, pool_on
    from qbatch.model.machine import Host
    from qbatch.workloads.machines import load_machine

    if procs is not None and machine is not None:
        raise UsageError("--procs and --machine both set the machine; leave one out")
    if procs is not None:
        return Pool(name="main", hosts=(Host("machine", procs, 0, "main"),), spans=True)
    if machine is None:
        return None
    found = load_machine(machine)
    try:
        check_host_names(host.name for host in found.real_hosts)
    except InputError as error:
        raise InputError(f"{machine}: {error}") from error
    return pool_on(found, "main", "easy")


def _settings(
    path: Path | None,
    executor: str | None,
    policy: str | None,
    pool: Pool | None,
    mode: str,
    *,
    has_trace: bool,
) -> Settings:
    import msgspec

    from qbatch.daemon import config
    from qbatch.daemon.config import emulated
    from qbatch.daemon.own_policies import load_tried

    settings = config.read_config(path) if path is not None else config.default_settings()
    if executor is not None and executor not in ("process", "emulated"):
        raise UsageError(f"--executor {executor}: write process or emulated")
    if executor is None and path is None and (mode != "real" or has_trace):
        executor = "emulated"
    pools = settings.pools
    if pool is not None:
        pools = (msgspec.structs.replace(pool, name=pools[0].name, policy=pools[0].policy),)
    if policy is not None:
        load_tried(policy)
        pools = tuple(msgspec.structs.replace(pool, policy=policy) for pool in pools)
    if executor == "emulated":  # also where the configuration has pools of Dask workers
        pools = emulated(pools)
    return msgspec.structs.replace(settings, pools=pools, executor=executor or settings.executor)


def _note_classes(settings: Settings) -> None:
    """Print a note for each policy that does not follow the classes, the tiers or the site of its
    pool's machine file."""
    from qbatch.planning.policy import note_of_classes, note_of_site, note_of_tiers
    from qbatch.policies.registry import load_policy

    for pool in settings.pools:
        if pool.machine is None:
            continue
        for note in (note_of_classes, note_of_tiers, note_of_site):
            if text := note([load_policy(pool.policy)], pool.machine):
                talk(f"note: {text}")


def _note_past(settings: Settings, origin: float | None) -> None:
    """Print a note for each reservation of a machine file that is past when the clock begins;
    ``origin``: in seconds, None for the time of this machine."""
    from qbatch.daemon.core.reservations import past

    now = time.time() if origin is None else origin
    for pool in settings.pools:
        for note in past(pool.machine, round(now * 1e6)) if pool.machine is not None else ():
            talk(f"note: pool {pool.name}: {note}")


def _into_background(state: Path, socket_path: str) -> str:
    """Start the same command as a background session, wait until the daemon answers, and return
    where it is."""
    pid = _pid_of(socket_path)
    if pid:
        raise SocketOccupied(
            f"a daemon is up already (process {pid}) at {socket_path}; stop it with: qbatch down, "
            "or give this one a directory of its own with --state DIR"
        )
    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        log_path = state / "log"
        log = open(log_path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600))  # noqa: SIM115 - the child has it
    except OSError as error:
        raise InputError(
            f"state directory {state}: {error.strerror}; give another with --state"
        ) from error
    arguments = [sys.executable, "-m", "qbatch", *sys.argv[1:], "--foreground"]
    begin = log_path.stat().st_size
    child = subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )
    log.close()
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        code = child.poll()
        if code is not None:
            text = log_path.read_bytes()[begin:].decode("utf-8", "replace").strip().splitlines()
            failure = QbatchError(
                (text[-1] if text else f"the daemon ended with {code}").removeprefix("qbatch: ")
            )
            failure.exit_code = code if code > 0 else 1
            raise failure
        if _pid_of(socket_path) != child.pid:
            time.sleep(0.02)
            continue
        return f"the daemon is up (process {child.pid}); socket {socket_path}, log {log_path}"
    raise QbatchError(f"the daemon does not answer after 120 s; see {log_path}")


def _pid_of(socket_path: str) -> int:
    """Return the process that answers at a socket, 0 if none does."""
    from qbatch.client import ClientSession
    from qbatch.wire.records import ServerRecord
    from qbatch.wire.requests import ServerStatus

    try:
        with ClientSession(socket_path, patience=0.0) as session:
            return session.ask(ServerStatus(), ServerRecord).pid
    except QbatchError:
        return 0


class SocketOccupied(QbatchError):  # noqa: N818 - the name describes the place
    """Another daemon uses the socket (exit code 75)."""

    exit_code = 75


def down(
    jobs: bool = typer.Option(False, "--jobs", help="End the running jobs too."),
    socket: str | None = typer.Option(None, "--socket", help="The daemon's socket."),
) -> None:
    """Stop the daemon; running jobs continue, and the next start finds them again."""
    from qbatch.client import ClientSession
    from qbatch.wire.records import Done, ServerRecord
    from qbatch.wire.requests import ServerStatus, Shutdown

    with ClientSession(socket) as session:
        pid = session.ask(ServerStatus(), ServerRecord).pid
        said = session.ask(Shutdown(is_with_jobs=jobs), Done, timeout=None)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and os.path.exists(f"/proc/{pid}"):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    break
        except OSError:
            break
        time.sleep(0.02)
    talk(f"the daemon has stopped; {said.text.partition('; ')[2] or said.text}")
