"""Executors of runs: this process, processes of this machine, or the workers of a Dask cluster; all
by one protocol.

Cases are sent in chunks of about a quarter of a second, so that thousands of short runs cost
little, and come back as outcomes in any order.  The *context* of a run (logs, machines) reaches
each worker once.  The cases of a lost worker are run again, one at a time; a case that loses its
worker again and again is given up, with that as its error.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from qbatch.distribution import install_command
from qbatch.model.errors import InputError, QbatchError, UsageError
from qbatch.sweeps.code import program_digest

WORKERS = len(os.sched_getaffinity(0))
"""Default number of processes: the cores available to this one."""

CHUNK_SECONDS = 0.25
"""Target duration of a chunk of cases."""

LOSSES = 3
"""Number of lost workers after which a case is given up."""

_LARGEST_CHUNK = 500
_IN_FLIGHT = 2
"""Chunks in flight for each worker: one that runs and one that waits."""

_DASK_SECONDS = 10
_LOOK_SECONDS = 1.0
_ALONE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Place:
    """The place of runs: processes of this machine (1: this process), or the Dask cluster of an
    address."""

    processes: int = WORKERS
    address: str | None = None

    @property
    def is_here(self) -> bool:
        """Whether every run is made in this process."""
        return self.address is None and self.processes == 1


class CaseOutcome(NamedTuple):
    """The outcome of a case: its value, or an error; its duration in seconds; whether its workers
    were lost."""

    case: Any
    value: Any
    error: str | None
    seconds: float
    is_lost: bool = False


Make = Callable[[Any, Any], Any]
"""A function that makes a run of the context and a case; a function of a module, so that workers
can import it."""


def place_of(text: str) -> Place:
    """Return the place named by ``local``, ``local:N`` (processes) or ``dask=ADDRESS``.

    Raises:
        UsageError: the text names none.
    """
    kind, _, rest = text.partition("=")
    if kind == "dask" and rest:
        return Place(address=rest)
    name, _, count = text.partition(":")
    if name == "local" and (
        not count or (count.isdecimal() and count.isascii() and 0 < int(count) <= 1024)
    ):
        return Place(int(count) if count else WORKERS)
    raise UsageError(
        f"--on {text!r}: use local, local:N with N processes, or dask=ADDRESS such as "
        "dask=tcp://127.0.0.1:8786"
    )


def each_outcome(
    make: Make, cases: Iterable[Any], place: Place, context: Any = None
) -> Iterator[CaseOutcome]:
    """Yield the outcome of each case when it is ready; ``cases`` are taken from their iterator only
    as workers become free.

    Raises:
        InputError: no scheduler answers at the address, or qbatch differs there.
    """
    if place.is_here:
        for case in cases:
            yield _outcome(make, context, case)
        return
    with ExitStack() as stack:
        pool: _Pool = (
            _Cluster(place.address, stack)
            if place.address is not None
            else _Processes(place.processes, stack)
        )
        pool.take(context)
        yield from _Sharing(make, iter(cases), pool).outcomes()


def _outcome(make: Make, context: Any, case: Any) -> CaseOutcome:
    begin = time.perf_counter()
    try:
        value, error = make(context, case), None
    except Exception as failure:
        text = " ".join(f"{type(failure).__name__}: {failure}".split())
        value, error = None, text.encode(errors="backslashreplace").decode()
    return CaseOutcome(case, value, error, time.perf_counter() - begin)


def make_chunk(make: Make, context: Any, cases: list[Any]) -> list[CaseOutcome]:
    """Run some cases one after another, on a worker."""
    return [_outcome(make, context, case) for case in cases]


# ------------------------------------------------------------------------------------------------
# sharing them out


@dataclass(slots=True)
class _Chunk:
    cases: list[Any]
    losses: int = 0


@dataclass(slots=True)
class _Sharing:
    """Chunks that wait, are in flight, or run again because a worker was lost."""

    make: Make
    source: Iterator[Any]
    pool: _Pool
    size: int = 1
    again: deque[_Chunk] = field(default_factory=deque)
    under_way: dict[Future[list[CaseOutcome]], _Chunk] = field(default_factory=dict)

    def outcomes(self) -> Iterator[CaseOutcome]:
        while self._fill():
            done, _ = wait(self.under_way, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
            self.pool.check()
            lost = []
            for future in done:
                chunk = self.under_way.pop(future)
                try:
                    found = future.result()
                except CancelledError:  # its inputs were lost with another worker
                    lost.append(chunk)
                    continue
                except Exception as error:
                    if not isinstance(error, (BrokenExecutor, *self.pool.losses)):
                        raise
                    chunk.losses += 1
                    lost.append(chunk)
                    continue
                self._learn(found)
                yield from found
            if lost:
                yield from self._lost(lost)

    def _fill(self) -> bool:
        """Send chunks until all workers are busy, those of lost workers one at a time; return
        whether any is in flight."""
        while len(self.under_way) < (1 if self.again else _IN_FLIGHT * max(self.pool.workers(), 1)):
            chunk = (
                self.again.popleft() if self.again else _Chunk(list(islice(self.source, self.size)))
            )
            if not chunk.cases:
                break
            self.under_way[self.pool.submit(self.make, chunk.cases)] = chunk
        return bool(self.under_way)

    def _learn(self, found: list[CaseOutcome]) -> None:
        """Make chunks longer if runs are short; by little at a time, because runs differ."""
        seconds = sum(each.seconds for each in found) / len(found)
        fitting = int(CHUNK_SECONDS / max(seconds, 1e-6))
        self.size = max(1, min(fitting, 4 * self.size, _LARGEST_CHUNK))

    def _lost(self, lost: list[_Chunk]) -> Iterator[CaseOutcome]:
        """Queue the cases of lost workers again, each alone, and give up those that have lost too
        many."""
        if self.pool.restarts():
            lost += self.under_way.values()
            self.under_way.clear()
        for chunk in lost:
            # If several cases were in flight, the guilty one is found only when each runs alone.
            if chunk.losses >= LOSSES:
                text = (
                    f"the worker was lost {chunk.losses} times while it made this run (killed, "
                    "or out of memory)"
                )
                yield from (CaseOutcome(case, None, text, 0.0, True) for case in chunk.cases)
            else:
                self.again += (_Chunk([case], chunk.losses) for case in chunk.cases)


class _Pool(ABC):
    """A pool of workers, the common part of the two kinds."""

    losses: tuple[type[Exception], ...] = ()
    """Errors, in addition to those of every executor, which mean that a worker was lost."""

    executor: Executor
    context: Any = None

    @abstractmethod
    def take(self, context: Any) -> None:
        """Send the context to all workers."""

    @abstractmethod
    def workers(self) -> int:
        """Return how many runs are made at once."""

    @abstractmethod
    def submit(self, make: Make, cases: list[Any]) -> Future[list[CaseOutcome]]:
        """Send out a chunk."""

    def check(self) -> None:  # noqa: B027 - most pools have nothing to check
        """Stop waiting for results that cannot come any more."""

    def restarts(self) -> bool:
        """Restart after a loss; return whether all chunks in flight are lost with it."""
        return False


# ------------------------------------------------------------------------------------------------
# processes


class _Processes(_Pool):
    """Processes of this machine, started fresh: a fork of one that draws bars in a thread may
    inherit a lock for ever."""

    def __init__(self, count: int, stack: ExitStack) -> None:
        self.count = count
        self.begun: set[BaseProcess] = set()
        stack.callback(self._end)

    def take(self, context: Any) -> None:
        self.context = context
        self.executor = ProcessPoolExecutor(
            self.count,
            mp_context=get_context("spawn"),
            initializer=_begin_process,
            initargs=(context,),
        )

    def workers(self) -> int:
        return self.count

    def submit(self, make: Make, cases: list[Any]) -> Future[list[CaseOutcome]]:
        others = set(active_children())
        try:
            with _without_main():
                future = self.executor.submit(_make_here, make, cases)
        except BrokenExecutor as error:
            failed: Future[list[CaseOutcome]] = Future()
            failed.set_exception(error)
            return failed
        self.begun |= set(active_children()) - others
        return future

    def restarts(self) -> bool:
        """Start all processes again: if one is lost, the executor ends the others."""
        self._end()
        self.take(self.context)
        return True

    def _end(self) -> None:
        """End the processes at once, even during a run that is no longer wanted."""
        for process in self.begun:
            process.terminate()
        self.executor.shutdown(cancel_futures=True)
        self.begun.clear()


@contextmanager
def _without_main() -> Iterator[None]:
    """Start processes that do not import the main program: it may have no guard, and no run needs
    it."""
    main = vars(sys.modules["__main__"])
    removed: dict[str, Any] = {
        name: main[name] for name in ("__file__", "__spec__") if name in main
    }
    main["__spec__"] = None
    main.pop("__file__", None)
    try:
        yield
    finally:
        main.update(removed)


_CONTEXT: Any = None
"""The context of this process, if it is a worker."""


def _begin_process(context: Any) -> None:
    """Keep the context; leave Ctrl-C to the parent, which ends this process; end when the parent is
    gone."""
    global _CONTEXT
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _CONTEXT = context


def _end_with_parent() -> None:
    """Wait until the parent is gone, even if it was killed, and end at once."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _make_here(make: Make, cases: list[Any]) -> list[CaseOutcome]:
    return make_chunk(make, _CONTEXT, cases)


# ------------------------------------------------------------------------------------------------ a
# Dask cluster


class _Cluster(_Pool):
    """The workers of a Dask cluster; Dask itself sends the chunk of a lost worker to another, a few
    times."""

    def __init__(self, address: str, stack: ExitStack) -> None:
        try:
            import distributed
        except ImportError as error:
            raise UsageError(
                f"--on dask={address}: needs dask.distributed: {install_command('dask')}"
            ) from error
        self.address = address
        self.client: Any
        self.given: Any = None
        self.alone_since = time.monotonic()
        self.losses = (distributed.scheduler.KilledWorker, distributed.client.FutureCancelledError)
        stack.enter_context(_quiet())
        try:
            connect: Any = distributed.Client
            self.client = connect(address, timeout=_DASK_SECONDS, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise InputError(
                f"--on dask={address}: no Dask scheduler answers there; start one, or correct it"
            ) from error
        stack.callback(self.client.close)
        if not self.workers():
            raise InputError(
                f"--on dask={address}: the cluster has no workers; start some (dask worker "
                f"{address})"
            )
        self._check()
        self.tasks: set[Any] = set()  # in flight: Dask cancels a task without a reference

    def take(self, context: Any) -> None:
        """Send the context to every worker once; a later worker gets it from another one."""
        self.given = context
        self.context = (
            None
            if context is None
            else self.client.scatter([context], broadcast=True, hash=False)[0]
        )

    def workers(self) -> int:
        """Return the total number of threads of the workers, as the scheduler knows them now."""
        try:
            threads: dict[str, int] = self.client.nthreads()
        except (
            OSError,
            RuntimeError,
        ):  # the scheduler does not answer: ``check`` reports this when it gives up
            return 0
        return sum(threads.values())

    def check(self) -> None:
        """Give up if the scheduler is gone, or has had no worker for a while."""
        if self.client.status in ("closed", "closing"):
            raise QbatchError(
                f"--on dask={self.address}: the scheduler is gone; finished runs are kept; call "
                "again"
            )
        now = time.monotonic()
        if self.client.status != "running" or self.workers():
            self.alone_since = now
        elif now - self.alone_since > _ALONE_SECONDS:
            raise QbatchError(
                f"--on dask={self.address}: the cluster has had no workers for {_ALONE_SECONDS} s; "
                "finished runs are "
                "kept; call again when there are some"
            )

    def restarts(self) -> bool:
        """Send the context again if it was lost with its workers; other chunks continue."""
        if (
            self.context is not None
            and self.context.status in ("lost", "cancelled", "error")
            and self.workers()
        ):
            self.take(self.given)
        return False

    def submit(self, make: Make, cases: list[Any]) -> Future[list[CaseOutcome]]:
        """Send out a chunk.

        Dask's own executor never ends a future if its result was lost on the way (cfexecutor.py of
        distributed 2026.8).
        """
        try:
            task = self.client.submit(
                make_chunk, make, self.context, cases, pure=False, retries=LOSSES
            )
        except RuntimeError:  # the client was closed meanwhile
            self.check()
            raise
        outcomes: Future[list[CaseOutcome]] = Future()
        self.tasks.add(task)
        task.add_done_callback(partial(self._hand_on, outcomes))
        return outcomes

    def _hand_on(self, outcomes: Future[list[CaseOutcome]], task: Any) -> None:
        """Give the result of a task that has ended, or its error, to the future that waits for
        it."""
        try:
            outcomes.set_result(task.result())
        except BaseException as error:
            outcomes.set_exception(error)
        self.tasks.discard(task)

    def _check(self) -> None:
        """Refuse workers without qbatch, or with another version: their figures would differ."""
        ours = program_digest()
        found = self.client.run(program_digest, on_error="return")
        for worker, digest in sorted(found.items()):
            if isinstance(digest, Exception):
                raise InputError(
                    f"--on dask={self.address}: worker {worker} has no qbatch ({digest}); install "
                    "it there"
                )
            if digest != ours:
                raise InputError(
                    f"--on dask={self.address}: worker {worker} has another version of qbatch; "
                    "install the same one"
                )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's messages about losses: the error reports them."""
    import logging

    log = logging.getLogger("distributed")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)
