"""How long small requests wait while the daemon serves another client's large one.

Two processes ask all the while, each one request after the other with a pause of ``PAUSE`` between:
one asks for a job, one submits a job.  A third process sends one large request after the other.  A
small request counts for a large one if it was under way between the sending of the large one and
``AFTER`` seconds after its answer.  So what follows the answer counts too: a pass, a snapshot, the
lines of the accounting files.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from qbatch.client import ClientSession
from qbatch.wire.records import (
    Done,
    Forecasts,
    Jobs,
    Outcomes,
    Shadows,
    SubmissionRecord,
    Text,
)
from qbatch.wire.requests import (
    Alter,
    Backup,
    Changes,
    Check,
    Delete,
    Forecast,
    History,
    Hold,
    HostControl,
    JobStatus,
    Move,
    PolicySet,
    QueueControl,
    Release,
    Reload,
    Request,
    Shadow,
    Spec,
    Submit,
)
from tests.bench.flood import flood
from tests.daemon.harness import Daemon

PAUSE = 0.002
AFTER = 1.0
NAMED = 20_000
"""Jobs that one request names."""

_LONG = 10**12
_POOL = '[[pool]]\nname = "more"\nhosts = "m1"\ncpus = 16\n'
_CONFIG = (
    'executor = "emulated"\npolicy = "easy"\n[[pool]]\nhosts = "n[01-64]"\ncpus = 16\n'
    '[[queue]]\nname = "batch"\n[[queue]]\nname = "other"\n'
)
Row = Callable[[str, str], None]
Large = tuple[str, Callable[[ClientSession], object]]


def _ask_all_the_while(path: str, is_question: bool, pipe: Connection) -> None:
    """Ask until the pipe says to end; then send when each request was sent and answered."""
    spec = Spec(script="true\n", directory="/tmp", resources={"select": "1:ncpus=1"}, runtime=_LONG)
    found = []
    with ClientSession(path) as session:
        while not pipe.poll():
            begun = time.monotonic()
            if is_question:
                session.ask(JobStatus(jobs=("7",), finished="also"), Jobs)
            else:
                session.ask(Submit(spec=spec), SubmissionRecord)
            found.append((begun, time.monotonic()))
            time.sleep(PAUSE)
    pipe.send(found)


class _Neighbours:
    """The two that ask all the while."""

    def __init__(self, path: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes = []
        for is_question in (True, False):
            here, there = context.Pipe()
            context.Process(
                target=_ask_all_the_while, args=(path, is_question, there), daemon=True
            ).start()
            self._pipes.append(here)

    def waits(self) -> list[list[tuple[float, float]]]:
        """End them; return of the question and of the submission when each was sent and
        answered."""
        for pipe in self._pipes:
            pipe.send(None)
        return [pipe.recv() for pipe in self._pipes]


def _all_pages(session: ClientSession, request: Callable[[str], Request]) -> None:
    after = ""
    while True:
        page = session.ask(request(after), Jobs)
        after = page.next
        if not after:
            return


def _of_array(name: str) -> list[Large]:
    """Return what is done to an array of ``name``, at last its deletion."""
    array = (name,)
    longer = Changes(resources={"walltime": "2:00:00"})
    return [
        ("qhold of the array", lambda session: session.ask(Hold(jobs=array), Outcomes)),
        ("qrls of the array", lambda session: session.ask(Release(jobs=array), Outcomes)),
        (
            "qalter of the array's walltime",
            lambda session: session.ask(Alter(jobs=array, changes=longer), Outcomes),
        ),
        (
            "qmove of the array",
            lambda session: session.ask(Move(jobs=array, destination="other"), Outcomes),
        ),
        ("qdel of the array", lambda session: session.ask(Delete(jobs=array), Outcomes)),
    ]


def _of_many(first: int) -> list[Large]:
    """Return what is done to many jobs that one request names."""
    many = tuple(str(number) for number in range(first, first + NAMED))
    return [
        (f"qhold of {NAMED:,} jobs", lambda session: session.ask(Hold(jobs=many), Outcomes)),
        (f"qrls of {NAMED:,} jobs", lambda session: session.ask(Release(jobs=many), Outcomes)),
        (
            f"qstat -f of {NAMED:,} jobs",
            lambda session: _all_pages(
                session, lambda after: JobStatus(jobs=many, after=after, limit=1000)
            ),
        ),
        (f"qdel of {NAMED:,} jobs", lambda session: session.ask(Delete(jobs=many), Outcomes)),
    ]


def _of_server(daemon: Daemon) -> list[Large]:
    """Return what is asked of the whole server."""
    config = daemon.directory / "qbatch.toml"

    def reload(old: str, new: str) -> Callable[[ClientSession], object]:
        def act(session: ClientSession) -> object:
            config.write_text(
                config.read_text(encoding="utf-8").replace(old, new), encoding="utf-8"
            )
            return session.ask(Reload(), Text)

        return act

    batch = ("batch",)
    return [
        (
            "reload, another limit of a queue",
            reload('name = "other"\n', 'name = "other"\nmax_queued = 1000000\n'),
        ),
        ("reload, another policy", reload('"easy"', '"fcfs"')),
        (
            "reload, a pool more",
            reload('[[queue]]\nname = "batch"', f'{_POOL}[[queue]]\nname = "batch"'),
        ),
        ("policy-set", lambda session: session.ask(PolicySet(policy="easy:order=lxf"), Text)),
        ("policy-set back", lambda session: session.ask(PolicySet(policy="easy"), Text)),
        (
            "stop of a queue",
            lambda session: session.ask(QueueControl(queues=batch, started=False), Outcomes),
        ),
        (
            "start of a queue",
            lambda session: session.ask(QueueControl(queues=batch, started=True), Outcomes),
        ),
        (
            "a host closed",
            lambda session: session.ask(HostControl(hosts=("n01",), action="drain"), Outcomes),
        ),
        (
            "a host opened",
            lambda session: session.ask(HostControl(hosts=("n01",), action="resume"), Outcomes),
        ),
        (
            "backup",
            lambda session: session.ask(Backup(path=str(daemon.directory / "backup")), Done),
        ),
        ("check", lambda session: session.ask(Check(), Text)),
        (
            "qstat of everything",
            lambda session: _all_pages(
                session,
                lambda after: JobStatus(after=after, limit=1000, is_brief=True, subjobs=True),
            ),
        ),
        (
            "export (qstat -f of everything, ended jobs too)",
            lambda session: _all_pages(
                session,
                lambda after: JobStatus(after=after, limit=1000, finished="also", subjobs=True),
            ),
        ),
        (
            "history of everything",
            lambda session: _all_pages(session, lambda after: History(after=after, limit=1000)),
        ),
        ("forecast", lambda session: session.ask(Forecast(), Forecasts)),
        (
            "two policies in shadow",
            lambda session: session.ask(
                Shadow(action="set", policies=("fcfs", "sjf-backfill")), Shadows
            ),
        ),
        ("shadows off", lambda session: session.ask(Shadow(action="set", policies=()), Shadows)),
    ]


def measure(row: Row, *, jobs: int = 200_000, array: int = 100_000) -> None:
    """Measure the small requests during each large one; ``row`` takes a label and a figure."""
    with (
        tempfile.TemporaryDirectory() as directory,
        Daemon(Path(directory), config=_CONFIG) as daemon,
    ):
        done: list[tuple[str, float, float]] = []
        with ClientSession(daemon.socket, timeout=300.0) as session:
            flood(daemon.socket, jobs, 16, 64)
            daemon.warm()
            time.sleep(3.0)
            neighbours = _Neighbours(daemon.socket)
            time.sleep(2.0)

            def large(label: str, act: Callable[[ClientSession], object]) -> None:
                begun = time.monotonic()
                act(session)
                done.append((label, begun, time.monotonic()))
                time.sleep(AFTER + 0.2)

            large("nothing large", lambda _: time.sleep(5.0))
            names: list[str] = []
            spec = Spec(
                script="true\n",
                directory="/tmp",
                array=f"1-{array}",
                runtime=_LONG,
                resources={"select": "1:ncpus=1"},
            )
            large(
                f"submission of an array of {array:,}",
                lambda session: names.append(session.ask(Submit(spec=spec), SubmissionRecord).job),
            )
            for label, act in [*_of_array(names[0]), *_of_many(jobs // 2), *_of_server(daemon)]:
                large(label, act)
            of_both = neighbours.waits()
        for label, begun, ended in done:
            figures = []
            for name, waits in zip(("a question", "a submission"), of_both, strict=True):
                some = sorted(
                    answer - sent
                    for sent, answer in waits
                    if answer >= begun and sent <= ended + AFTER
                )
                figures.append(f"{name} {_percentiles(some)}")
            row(f"beside {label}, of {ended - begun:.2f} s", "; ".join(figures))


def _percentiles(seconds: list[float]) -> str:
    """Return p50, p99 and the longest of ascending seconds, in milliseconds."""
    if not seconds:
        return "none answered"
    places = (len(seconds) // 2, min(len(seconds) * 99 // 100, len(seconds) - 1), len(seconds) - 1)
    return "p50 {:.1f}, p99 {:.1f}, max {:.0f} ms".format(
        *(seconds[place] * 1e3 for place in places)
    )
