"""The Dask executor and its workers' side without Dask: answers are lost, sessions are old,
directories are gone."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from qbatch.daemon.executors import dask_executor, dask_worker
from qbatch.daemon.executors.attempt import LOST, NOT_STARTED, Attempt, Ended, Report
from qbatch.daemon.executors.dask_cluster import ClusterRefusedError, SilentError, WorkerSeen
from qbatch.daemon.executors.dask_executor import DaskExecutor, Track
from qbatch.daemon.executors.supervision import files
from qbatch.distribution import __version__
from qbatch.model.machine import Host
from tests.daemon.executors.world import World

DEADLINE = 60.0


class Cluster:
    """Workers in this process.  ``loss``: the share of calls that are lost before, and after, they
    are carried out."""

    address = "tcp://nowhere:1"

    def __init__(self, loss: float = 0.0) -> None:
        self.loss, self.chance = loss, random.Random(11)
        self.there: dict[str, Any] = {}

    def add(self, name: str, threads: int = 4) -> Any:
        status = SimpleNamespace(name="running")
        self.there[name] = SimpleNamespace(
            id=f"{name}-{time.monotonic_ns()}", status=status, threads=threads
        )
        return self.there[name]

    def end(self, name: str) -> None:
        self.there.pop(name).status.name = "closed"

    async def workers(self) -> dict[str, WorkerSeen]:
        return {
            name: WorkerSeen(f"tcp://{each.id}", each.threads, 0)
            for name, each in self.there.items()
        }

    async def call(
        self,
        address: str,
        function: Callable[..., Awaitable[Any]],
        *said: Any,
        seconds: float = 0.0,
    ) -> Any:
        worker = next((each for each in self.there.values() if f"tcp://{each.id}" == address), None)
        if worker is None or self.chance.random() < self.loss:
            raise SilentError("the question is lost")
        answer = await function(*said, dask_worker=worker)
        if self.chance.random() < self.loss:
            raise SilentError("the answer is lost")
        if isinstance(answer, dict) and "error" in answer:
            raise ClusterRefusedError(answer["error"])
        return answer

    async def close(self) -> None:
        pass


class Story:
    """What the executor reported to the core, in order; the gate of hosts too."""

    def __init__(self, *names: str) -> None:
        self.reports: list[Any] = []
        self.names = names

    def hosts(self) -> tuple[Host, ...]:
        return tuple(Host(name, 4, 0, "main") for name in self.names)

    def take_down(self, name: str, why: str) -> None:
        self.reports.append(("down", name, why))

    def bring_up(self, name: str) -> None:
        self.reports.append(("up", name))

    def report(self, said: Report) -> None:
        self.reports.append(said)

    def ended(self, key: str) -> list[Ended]:
        return [each for each in self.reports if isinstance(each, Ended) and each.key == key]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(dask_executor, "FIRST_DELAY", 0.01)
    monkeypatch.setattr(dask_executor, "LOOK", 0.1)
    monkeypatch.setattr(dask_worker, "PIECE", 1000)
    yield
    for site in list(dask_worker._sites.values()):
        site.guard.kill()
        site.guard.wait()
    dask_worker._sites.clear()


@asynccontextmanager
async def running(
    cluster: Cluster, story: Story, base: Path, *expected: Attempt
) -> AsyncIterator[DaskExecutor]:
    executor = DaskExecutor(
        "tcp://nowhere:1",
        base / "here",
        story.report,
        story,
        identity="me",
        directory=str(base / "there"),
        timeout=30.0,
    )
    executor.cluster = cluster  # type: ignore[assignment]
    await executor.recover(list(expected))
    try:
        yield executor
    finally:
        await executor.close()


async def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def end_sites(cluster: Cluster) -> None:
    """Let the workers close, with what runs on them."""
    for name in list(cluster.there):
        cluster.end(name)
    await until(lambda: not dask_worker._sites)
    await asyncio.gather(*[task for task in asyncio.all_tasks() if "until_closed" in repr(task)])


def marked(base: Path) -> Counter[str]:
    path = base / "marks"
    return Counter(path.read_text(encoding="ascii").split()) if path.exists() else Counter()


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Attempt]:
    world = World(tmp_path)

    def make(key: str, script: str = "", host: str = "a", **changes: object) -> Attempt:
        return world.attempt(key, f"echo {key} >> {tmp_path}/marks\n{script}", host=host, **changes)

    return make


def test_each_attempt_starts_once_and_ends_once_though_questions_and_answers_are_lost(
    tmp_path: Path, made: Callable[..., Attempt]
) -> None:
    attempts = [
        made(f"{n}.1", f"seq {500 * n}\necho e{n} >&2\nexit {n}\n", host="ab"[n % 2])
        for n in range(8)
    ]

    async def play() -> None:
        cluster, story = Cluster(loss=0.3), Story("a", "b")
        cluster.add("a")
        cluster.add("b")
        async with running(cluster, story, tmp_path) as executor:
            for attempt in attempts:
                executor.launch(attempt)
                executor.launch(attempt)
            await until(lambda: marked(tmp_path).total() >= 4)
        # Another life of the daemon: what it knows is that all of them were to run.
        async with running(cluster, story, tmp_path, *attempts) as executor:
            await until(lambda: all(story.ended(attempt.key) for attempt in attempts))
            # As after a recovery of the core: the end is reported again.
            executor.launch(attempts[3])
            await until(lambda: len(story.ended("3.1")) >= 2)
            for attempt in attempts:
                executor.forget(attempt.key)
            cluster.loss = 0.0
            await until(lambda: not list((tmp_path / "there").glob("*/*/[0-9]*")))
        for n, attempt in enumerate(attempts):
            assert {said.status for said in story.ended(attempt.key)} == {n}
            assert Path(attempt.output).read_text() == "".join(
                f"{i}\n" for i in range(1, 500 * n + 1)
            )
            assert Path(attempt.error).read_text() == f"e{n}\n"
        await end_sites(cluster)

    asyncio.run(play())
    assert marked(tmp_path) == {attempt.key: 1 for attempt in attempts}


def test_what_ended_before_it_was_handed_over_again_is_forgotten_there_too(
    tmp_path: Path, made: Callable[..., Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restart the worker may report an end before the daemon has prepared the attempt
    anew."""
    attempt, prepare, may_go_on = made("1.1", "echo done\n"), Track.prepare, threading.Event()

    def late(track: Track) -> object:
        found = prepare(track)
        assert may_go_on.wait(DEADLINE)
        return found

    async def play() -> None:
        cluster, story = Cluster(), Story("a")
        cluster.add("a")
        async with running(cluster, story, tmp_path) as executor:
            executor.launch(attempt)
            await until(lambda: marked(tmp_path).total() == 1)
        site = next(iter(dask_worker._sites.values()))
        await until(lambda: attempt.key in site.ended)
        # As if the daemon had not heard of it: its own record is not there.
        shutil.rmtree(tmp_path / "here" / attempt.key)
        monkeypatch.setattr(Track, "prepare", late)
        async with running(cluster, story, tmp_path, attempt) as executor:
            await until(lambda: story.ended(attempt.key))
            executor.forget(attempt.key)
            may_go_on.set()
            await until(lambda: not list((tmp_path / "there").glob("*/*/[0-9]*")))
        await end_sites(cluster)

    asyncio.run(play())


def test_a_host_is_down_before_its_attempts_are_lost_and_they_are_never_sent_again(
    tmp_path: Path, made: Callable[..., Attempt]
) -> None:
    attempt = made("1.1", "while :; do sleep 0.05; done\n")

    async def play() -> None:
        cluster, story = Cluster(), Story("a")
        cluster.add("a")
        async with running(cluster, story, tmp_path) as executor:
            executor.launch(attempt)
            await until(lambda: marked(tmp_path).total() == 1)
            cluster.end("a")
            await until(lambda: story.ended("1.1"))
            down = next(
                n
                for n, each in enumerate(story.reports)
                if isinstance(each, tuple) and each[0] == "down"
            )
            (end,) = story.ended("1.1")
            assert down < story.reports.index(end)
            assert (end.status, "host a went down" in end.why) == (LOST, True)
            await until(lambda: not dask_worker._sites)
            cluster.add("a")
            story.reports.clear()
            await until(lambda: ("up", "a") in story.reports)
            executor.launch(attempt)
            await until(lambda: story.ended("1.1"))
            assert story.ended("1.1")[0].status == LOST
        await end_sites(cluster)

    asyncio.run(play())
    assert marked(tmp_path) == {"1.1": 1}


def test_an_attempt_whose_directory_is_gone_is_lost_and_not_started_again(
    tmp_path: Path, made: Callable[..., Attempt]
) -> None:
    attempt = made("1.1")

    async def play() -> None:
        cluster, story = Cluster(), Story("a")
        cluster.add("a")
        async with running(cluster, story, tmp_path) as executor:
            executor.launch(attempt)
            await until(lambda: marked(tmp_path).total() == 1)
        await end_sites(cluster)
        shutil.rmtree(tmp_path / "there")
        (tmp_path / "here" / "1.1" / "exit.json").unlink(missing_ok=True)
        story.reports.clear()
        cluster.add("a")
        async with running(cluster, story, tmp_path, attempt):
            await until(lambda: story.ended("1.1"))
        assert story.ended("1.1")[0].status == LOST
        assert "is not the one in which it ran" in story.ended("1.1")[0].why
        await end_sites(cluster)

    asyncio.run(play())
    assert marked(tmp_path) == {"1.1": 1}


def test_a_worker_obeys_the_latest_session_only_each_command_once(
    tmp_path: Path, made: Callable[..., Attempt]
) -> None:
    async def play() -> None:
        cluster = Cluster()
        worker = cluster.add("a")

        async def opened(session: str, number: int) -> dict[str, Any]:
            order = {
                "version": __version__,
                "number": number,
                "session": session,
                "identity": "me",
                "host": "a",
                "keys": [],
            }
            said = await dask_worker.open_site(
                {**order, "directory": str(tmp_path / "there")}, dask_worker=worker
            )
            return {**said, "session": session}

        first = await opened("one", 1)
        command = (
            1,
            "launch",
            "1.1",
            msgspec.json.encode(made("1.1", "while :; do sleep 0.05; done\n")),
        )
        for _ in range(3):
            assert await dask_worker.carry_out(first, [command], dask_worker=worker) == {}
        await until(lambda: marked(tmp_path).total() == 1)
        second = await opened("two", 3)  # it does not expect 1.1: that is given up
        assert await opened("late", 2) == {"newest": 3, "session": "late"}
        assert (
            await dask_worker.carry_out(
                first, [(2, "launch", "2.1", command[3])], dask_worker=worker
            )
            is None
        )
        assert await dask_worker.watch(first, 0, 0.0, dask_worker=worker) is None
        await until(lambda: not list((tmp_path / "there").glob("*/*/[0-9]*")))
        news = await dask_worker.watch(second, -1, 0.0, dask_worker=worker)
        assert news is not None
        assert news["ended"] == {}
        old = {
            **second,
            "version": "0.0",
            "identity": "me",
            "host": "a",
            "directory": "",
            "keys": [],
        }
        refused = await dask_worker.open_site(old, dask_worker=worker)
        assert "install the same there" in refused["error"]
        await end_sites(cluster)

    asyncio.run(play())
    assert marked(tmp_path) == {"1.1": 1}


def test_a_long_script_and_a_home_that_is_elsewhere_come_along(
    tmp_path: Path, made: Callable[..., Attempt]
) -> None:
    script = tmp_path / "long"
    script.write_text(
        "#!/bin/sh\n" + "# filler\n" * 200_000 + 'echo "$HOME $PWD"\n', encoding="ascii"
    )
    gone = str(tmp_path / "no-such-home")
    attempt = made(
        "1.1",
        script_file=str(script),
        home=gone,
        directory=gone,
        environment={"PATH": "/usr/bin:/bin", "HOME": gone},
    )

    async def play() -> None:
        cluster, story = Cluster(), Story("a")
        cluster.add("a")
        async with running(cluster, story, tmp_path) as executor:
            executor.launch(attempt)
            await until(lambda: story.ended("1.1"))
        assert story.ended("1.1")[0].status == 0, story.reports
        await end_sites(cluster)

    asyncio.run(play())
    home = str(Path.home())
    assert Path(attempt.output).read_text() == f"{home} {home}\n"


LASTING = "while :; do sleep 0.05; done\n"


def test_an_attempt_of_which_the_loss_cannot_be_recorded_is_not_started_again(
    tmp_path: Path, made: Callable[..., Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = made("1.1", LASTING)
    write = files.write_exit

    def full(directory: int, said: dict[str, Any]) -> None:
        if "/here/" in os.readlink(f"/proc/self/fd/{directory}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        write(directory, said)

    async def play() -> None:
        cluster, story = Cluster(), Story("a")
        cluster.add("a")
        monkeypatch.setattr(files, "write_exit", full)
        async with running(cluster, story, tmp_path) as executor:
            executor.launch(attempt)
            await until(lambda: marked(tmp_path).total() == 1)
            cluster.end("a")
            await until(lambda: story.ended("1.1"))
            await until(lambda: not dask_worker._sites)
            story.reports.clear()
            cluster.add("a")
            await until(lambda: ("up", "a") in story.reports)
            monkeypatch.setattr(files, "write_exit", write)
            executor.launch(attempt)  # as after a recovery of the core
            await until(lambda: story.ended("1.1"))
        assert (story.ended("1.1")[0].status, story.ended("1.1")[0].why) == (
            LOST,
            dask_worker.GIVEN_UP,
        )
        await end_sites(cluster)

    asyncio.run(play())
    assert marked(tmp_path) == {"1.1": 1}


def test_what_runs_goes_on_though_its_worker_gave_up_another(
    tmp_path: Path, made: Callable[..., Attempt]
) -> None:
    kept, given_up = (
        made("1.1", f"until [ -e {tmp_path}/go ]; do sleep 0.05; done\nexit 5\n"),
        made("2.1", LASTING),
    )

    async def play() -> None:
        cluster, story = Cluster(), Story("a")
        cluster.add("a")
        async with running(cluster, story, tmp_path) as executor:
            executor.launch(kept)
            executor.launch(given_up)
            await until(lambda: marked(tmp_path).total() == 2)
        async with running(cluster, story, tmp_path, kept):
            await until(lambda: not list((tmp_path / "there").glob("*/*/2.1")))
        async with running(cluster, story, tmp_path, kept):
            (tmp_path / "go").touch()
            await until(lambda: story.ended("1.1"))
        assert story.ended("1.1")[0].status == 5
        await end_sites(cluster)

    asyncio.run(play())
    assert marked(tmp_path) == {"1.1": 1, "2.1": 1}


class Late(Cluster):
    """Openings of which the first is carried out late: when ``now`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.late: asyncio.Task[Any] | None = None
        self.now = asyncio.Event()

    async def call(
        self,
        address: str,
        function: Callable[..., Awaitable[Any]],
        *said: Any,
        seconds: float = 0.0,
    ) -> Any:
        if function is not dask_worker.open_site or self.late is not None:
            return await super().call(address, function, *said, seconds=seconds)

        async def later() -> Any:
            await self.now.wait()
            return await Cluster.call(self, address, function, *said)

        self.late = asyncio.ensure_future(later())
        raise SilentError("no answer in time")


def test_an_opening_that_comes_late_changes_nothing(
    tmp_path: Path, made: Callable[..., Attempt]
) -> None:
    async def play() -> None:
        cluster, story = Late(), Story("a")
        cluster.add("a")
        async with running(cluster, story, tmp_path) as executor:
            executor.launch(
                made("1.1", f"until [ -e {tmp_path}/go ]; do sleep 0.05; done\nexit 5\n")
            )
            await until(lambda: marked(tmp_path).total() == 1)
            cluster.now.set()
            assert cluster.late is not None
            assert "newest" in await cluster.late
            (tmp_path / "go").touch()
            await until(lambda: story.ended("1.1"))
        assert story.ended("1.1")[0].status == 5
        await end_sites(cluster)

    asyncio.run(play())


def test_an_attempt_that_its_worker_does_not_know_is_lost(
    tmp_path: Path, made: Callable[..., Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_worker.Site, "_launch", lambda self, attempt, is_new: None)
    monkeypatch.setattr(dask_executor, "WATCH", 0.1)

    async def play() -> None:
        cluster, story = Cluster(), Story("a")
        cluster.add("a")
        async with running(cluster, story, tmp_path) as executor:
            executor.launch(made("1.1"))
            await until(lambda: story.ended("1.1"))
        assert "does not know it" in story.ended("1.1")[0].why
        await end_sites(cluster)

    asyncio.run(play())


@pytest.mark.parametrize(
    "trouble",
    ["no script", "a full disk here", "a full disk there", "a worker that cannot take it"],
)
def test_the_trouble_of_one_attempt_is_its_own(
    tmp_path: Path, made: Callable[..., Attempt], monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    def full(*said: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def play() -> None:
        cluster, story = Cluster(), Story("a")
        cluster.add("a")
        async with running(cluster, story, tmp_path) as executor:
            executor.launch(made("1.1", f"until [ -e {tmp_path}/go ]; do sleep 0.05; done\n"))
            await until(lambda: marked(tmp_path).total() == 1)
            script = tmp_path / "script"
            if trouble == "no script":
                script = tmp_path / "not-there"
            else:
                script.write_text("true\n", encoding="ascii")
            with monkeypatch.context() as patch:
                if trouble == "a full disk here":
                    patch.setattr(Track, "note_place", full)
                elif trouble == "a full disk there":
                    patch.setattr(dask_worker, "_write", full)
                elif trouble == "a worker that cannot take it":
                    patch.setattr(dask_worker, "as_here", full)
                executor.launch(made("2.1", script_file=str(script)))
                await until(lambda: story.ended("2.1"))
            executor.launch(made("3.1"))
            await until(lambda: story.ended("3.1"))
            assert not story.ended("1.1")
            (tmp_path / "go").touch()
            await until(lambda: story.ended("1.1"))
        assert [story.ended(key)[0].status for key in ("1.1", "2.1", "3.1")] == [0, NOT_STARTED, 0]
        assert not [each for each in story.reports if isinstance(each, tuple) and each[0] == "down"]
        await end_sites(cluster)

    asyncio.run(play())
    assert marked(tmp_path) == {"1.1": 1, "3.1": 1}


@pytest.mark.parametrize("function", ["open_site", "carry_out", "watch"])
def test_an_unforeseen_error_takes_the_host_down_and_leaves_nothing_waiting(
    tmp_path: Path, made: Callable[..., Attempt], monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    class Damaged(Cluster):
        async def call(
            self,
            address: str,
            asked: Callable[..., Awaitable[Any]],
            *said: Any,
            seconds: float = 0.0,
        ) -> Any:
            if self.is_damaged and asked.__name__ == function:
                raise KeyError(address)
            return await super().call(address, asked, *said, seconds=seconds)

        is_damaged = True

    monkeypatch.setattr(dask_executor, "REFUSED_FOR", 0.3)

    async def play() -> None:
        cluster, story = Damaged(), Story("a")
        cluster.add("a")
        async with running(cluster, story, tmp_path) as executor:
            executor.launch(made("1.1", LASTING))
            await until(lambda: story.ended("1.1"))
            assert any(
                each[0] == "down" and "KeyError" in each[2]
                for each in story.reports
                if isinstance(each, tuple)
            )
            cluster.is_damaged = False
            story.reports.clear()
            await until(lambda: ("up", "a") in story.reports)
            executor.launch(made("2.1"))
            await until(lambda: story.ended("2.1"))
            assert story.ended("2.1")[0].status == 0
        await end_sites(cluster)

    asyncio.run(play())


def test_looking_at_the_workers_goes_on_after_an_unforeseen_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        cluster, story = Cluster(), Story("a")
        async with running(cluster, story, tmp_path):
            workers = cluster.workers

            async def damaged() -> dict[str, WorkerSeen]:
                monkeypatch.setattr(cluster, "workers", workers)
                raise KeyError("workers")

            monkeypatch.setattr(cluster, "workers", damaged)
            cluster.add("a")
            await until(lambda: ("up", "a") in story.reports)
            assert cluster.workers == workers  # the look that was damaged has been
        await end_sites(cluster)

    asyncio.run(play())
