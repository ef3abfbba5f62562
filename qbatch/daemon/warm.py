"""Compile the kernels of a live engine ahead: ``python -m qbatch.daemon.warm POLICY...``.

A child process of a daemon runs it while the daemon serves with plain Python.  It drives an engine
through all events under each policy on each kind of machine, because what is compiled depends on
the arrays that the engine passes.  A stamp next to the cache marks a policy as compiled; it is
removed with the cache when a kernel changes.  ``Warming`` is the daemon's side: the plain form of
the kernels serves until the daemon is busy.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from qbatch.engine.engine import Engine
from qbatch.model.errors import InputError, QbatchError, UsageError
from qbatch.model.events import Event, Finished, HostClosed, HostOpened, Submitted, Withdrawn
from qbatch.model.job import ChunkRequest, Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.planning.kernels import jit
from qbatch.planning.kernels.entries import compile_at_once, serve_compiled, serve_uncompiled
from qbatch.policies.registry import load_policy

log = logging.getLogger("qbatch")

BIG = 5000
"""Waiting jobs from which a pass in plain Python takes too long: the kernels are loaded before the
first pass."""

QUIET = 0.3
"""Seconds without a commit after which loading the kernels disturbs no client."""

PATIENCE = 5.0
"""Seconds after which the kernels are loaded all the same."""


class Warming:
    """Compiles the kernels of some policies in a child process, and loads them in a quiet
    moment."""

    def __init__(self, policies: list[str]) -> None:
        self.policies = list(dict.fromkeys(policies))
        self._is_over = False
        serve_uncompiled()

    def is_over(self) -> bool:
        """Return whether compiled kernels serve."""
        return self._is_over

    def before_the_first_pass(self, waiting: int) -> None:
        """Load the kernels in the cache at once if many jobs wait or many passes must be made
        again."""
        if not self._is_over and waiting >= BIG and are_cached(self.policies):
            self._load()

    def _load(self) -> None:
        serve_compiled()
        warm(self.policies)
        self._is_over = True

    async def run(
        self, is_busy: asyncio.Event, commits: Callable[[], int], waiting: Callable[[], int]
    ) -> None:
        """Wait until the daemon is busy, compile missing kernels in a child process, and load them
        when no client waits for an answer or the queue has become long."""
        if self._is_over:
            return
        await is_busy.wait()
        if not are_cached(self.policies) and not await self._compile():
            return
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            before = commits()
            await asyncio.sleep(QUIET)
            if commits() == before or waiting() >= BIG:
                break
        self._load()
        log.info("compiled kernels serve")

    async def _compile(self) -> bool:
        log.info(
            "kernels for %s are being compiled; their plain form serves until then",
            ", ".join(self.policies),
        )
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "qbatch.daemon.warm",
            *self.policies,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, errors = await child.communicate()
        except asyncio.CancelledError:
            child.kill()
            raise
        if child.returncode != 0:
            why = (
                errors.decode("utf-8", "replace").strip().splitlines() or [str(child.returncode)]
            )[-1]
            log.warning("kernels cannot be compiled (%s); their plain form serves on", why)
        return child.returncode == 0


_SECOND = 1_000_000
_MACHINES = (
    one_host(4),
    Machine((Host("a", 2), Host("b", 2))),
    Machine((Host("a", 4, 100), Host("b", 4)), single_host=True),
    Machine((Host("a", 4, 100), Host("b", 4)), chunked=True),
)


def is_warm(policies: Iterable[str]) -> bool:
    """Return whether all kernels of these policies for a live engine are in the cache on disk."""
    return all(stamp is not None and stamp.exists() for stamp in map(_stamp, policies))


def are_cached(policies: Iterable[str]) -> bool:
    """Return whether compiled kernels of these policies can be loaded."""
    try:
        return is_warm(policies)
    except InputError as error:
        log.warning("%s; the plain form of the kernels serves", error)
        return False


def warm(policies: Iterable[str]) -> None:
    """Compile the kernels of these policies, or load them from the cache, and write the stamps.

    Raises:
        QbatchError: for a policy that does not exist.
    """
    compile_at_once()
    for name in policies:
        load_policy(name)
        for machine in _MACHINES:
            # Some policies refuse some machines: there is nothing to compile for them.
            with suppress(UsageError):
                _live(name, machine)
                _live_in_slices(name, machine)
        stamp = _stamp(name)
        if stamp is not None:
            # The policy works without a cache too.
            with suppress(OSError):
                stamp.touch()


def _stamp(policy: str) -> Path | None:
    folder = jit.cache_folder()
    return (
        None
        if folder is None
        else folder / f"warm-{hashlib.sha256(policy.encode()).hexdigest()[:16]}"
    )


def _live(name: str, machine: Machine) -> None:
    """Make each kind of event happen: arrivals, early and late ends, withdrawn jobs, hosts closed
    and opened."""
    engine = Engine(machine, load_policy(name))
    # Narrower jobs wait behind the second one while processors are free.
    widths = (2, 4, 2, 1, 1, 2, 1, 2)
    first: list[Event] = [
        Submitted(_job(number, procs, machine)) for number, procs in enumerate(widths)
    ]
    engine.handle(0, first)
    engine.handle(1, [Submitted(_job(9, 1, machine))])
    for row in engine.view().queue.tolist():
        engine.explain(row)
    engine.handle(2, [Finished(row) for row in sorted(engine.view().running)[:1]])
    engine.handle(3, [Withdrawn(int(row)) for row in engine.view().queue[-1:]])
    engine.handle(4, [HostClosed(0)])
    engine.handle(5, [HostOpened(0)])
    at = 60 * _SECOND
    while engine.view().running:
        engine.handle(at, [])
        engine.handle(at + 1, [Finished(row) for row in engine.view().running])
        at += 60 * _SECOND


def _live_in_slices(name: str, machine: Machine) -> None:
    """Let enough jobs wait under a time-slicing policy that every class plans and searches, for
    some slices."""
    engine = Engine(machine, load_policy(name))
    if engine.phase() is None:
        return
    lengths = (
        *((1000 + number) * _SECOND for number in range(14)),
        *((20_000 + number) * _SECOND for number in range(8)),
    )
    jobs = [
        Job(number=number, submit=0, procs=2, estimate=length)
        for number, length in enumerate(lengths)
    ]
    engine.handle(0, [Submitted(job) for job in jobs])
    for turn in range(20):
        timer = engine.next_timer()
        if timer is None:
            return
        first = min(engine.view().running, default=None)
        engine.handle(timer - 1, [Finished(first)] if first is not None else [])
        engine.handle(
            timer - 1,
            [Submitted(Job(number=100 + turn, submit=timer - 1, procs=1, estimate=1000 * _SECOND))],
        )
        engine.handle(timer, [])


def _job(number: int, procs: int, machine: Machine) -> Job:
    chunks = (ChunkRequest(1, procs, number),) if machine.chunked else ()
    memory = number if machine.counts_memory else 0
    return Job(
        number=number,
        submit=0,
        procs=procs,
        estimate=(10 + number) * _SECOND,
        memory=memory,
        chunks=chunks,
    )


def main(policies: list[str]) -> int:
    """Warm the policies named on the command line."""
    try:
        warm(policies)
    except QbatchError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
