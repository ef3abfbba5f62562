"""The Dask executor and its workers' side without Dask: answers are lost, sessions are old, directories are gone."""

from __future__ import annotations

import asyncio
import random
import shutil
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
from qbatch.daemon.executors.attempt import LOST, Attempt, Ended, Report
from qbatch.daemon.executors.dask_cluster import RefusedError, SilentError, WorkerSeen
from qbatch.daemon.executors.dask_executor import DaskExecutor
from qbatch.distribution import __version__
from qbatch.model.machine import Host
from tests.daemon.executors.world import World

DEADLINE = 60.0


class Cluster:
    """Workers in this process.  ``loss``: the share of calls that are lost before, and after, they are carried out."""

    address = "tcp://nowhere:1"

    def __init__(self, loss: float = 0.0) -> None:
        self.loss, self.chance = loss, random.Random(11)
        self.there: dict[str, Any] = {}

    def add(self, name: str, threads: int = 4) -> Any:
        status = SimpleNamespace(name="running")
        self.there[name] = SimpleNamespace(id=f"{name}-{time.monotonic_ns()}", status=status, threads=threads)
        return self.there[name]

    def end(self, name: str) -> None:
        self.there.pop(name).status.name = "closed"

    async def workers(self) -> dict[str, WorkerSeen]:
        return {name: WorkerSeen(f"tcp://{each.id}", each.threads, 0) for name, each in self.there.items()}

    async def call(self, address: str, function: Callable[..., Awaitable[Any]], *said: Any, seconds: float = 0.0) -> Any:
        worker = next((each for each in self.there.values() if f"tcp://{each.id}" == address), None)
        if worker is None or self.chance.random() < self.loss:
            raise SilentError("the question is lost")
        answer = await function(*said, dask_worker=worker)
        if self.chance.random() < self.loss:
            raise SilentError("the answer is lost")
        if isinstance(answer, dict) and "error" in answer:
            raise RefusedError(answer["error"])
        return answer

    async def close(self) -> None:
        pass


class Story:
    """What the core was told, in order; the gate of hosts too."""

    def __init__(self, *names: str) -> None:
        self.told: list[Any] = []
        self.names = names

    def hosts(self) -> tuple[Host, ...]:
        return tuple(Host(name, 4, 0, "main") for name in self.names)

    def take_down(self, name: str, why: str) -> None:
        self.told.append(("down", name, why))

    def bring_up(self, name: str) -> None:
        self.told.append(("up", name))

    def report(self, said: Report) -> None:
        self.told.append(said)

    def ended(self, key: str) -> list[Ended]:
        return [each for each in self.told if isinstance(each, Ended) and each.key == key]


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
async def running(cluster: Cluster, story: Story, base: Path, *expected: Attempt) -> AsyncIterator[DaskExecutor]:
    executor = DaskExecutor(
        "tcp://nowhere:1", base / "here", story.report, story, identity="me", directory=str(base / "there"), timeout=30.0
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
    attempts = [made(f"{n}.1", f"seq {500 * n}\necho e{n} >&2\nexit {n}\n", host="ab"[n % 2]) for n in range(8)]

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
            executor.launch(attempts[3])  # as after a recovery of the core: the end is told again
            await until(lambda: len(story.ended("3.1")) >= 2)
            for attempt in attempts:
                executor.forget(attempt.key)
            cluster.loss = 0.0
            await until(lambda: not list((tmp_path / "there").glob("*/*/[0-9]*")))
        for n, attempt in enumerate(attempts):
            assert {said.status for said in story.ended(attempt.key)} == {n}
            assert Path(attempt.output).read_text() == "".join(f"{i}\n" for i in range(1, 500 * n + 1))
            assert Path(attempt.error).read_text() == f"e{n}\n"
        await end_sites(cluster)

    asyncio.run(play())
    assert marked(tmp_path) == {attempt.key: 1 for attempt in attempts}


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
            down = next(n for n, each in enumerate(story.told) if isinstance(each, tuple) and each[0] == "down")
            (end,) = story.ended("1.1")
            assert down < story.told.index(end)
            assert (end.status, "host a went down" in end.why) == (LOST, True)
            await until(lambda: not dask_worker._sites)
            cluster.add("a")
            story.told.clear()
            await until(lambda: ("up", "a") in story.told)
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
        story.told.clear()
        cluster.add("a")
        async with running(cluster, story, tmp_path, attempt):
            await until(lambda: story.ended("1.1"))
        assert story.ended("1.1")[0].status == LOST
        assert "is not the one in which it ran" in story.ended("1.1")[0].why
        await end_sites(cluster)

    asyncio.run(play())
    assert marked(tmp_path) == {"1.1": 1}


def test_a_worker_obeys_the_latest_session_only_each_command_once(tmp_path: Path, made: Callable[..., Attempt]) -> None:
    async def play() -> None:
        cluster = Cluster()
        worker = cluster.add("a")

        async def opened(session: str, *keys: str) -> dict[str, Any]:
            order = {"version": __version__, "session": session, "identity": "me", "host": "a", "keys": list(keys)}
            said = await dask_worker.open_site({**order, "directory": str(tmp_path / "there")}, dask_worker=worker)
            return {**said, "session": session}

        first = await opened("one")
        command = (1, "launch", "1.1", msgspec.json.encode(made("1.1", "while :; do sleep 0.05; done\n")))
        for _ in range(3):
            assert await dask_worker.tell(first, [command], dask_worker=worker) == {}
        await until(lambda: marked(tmp_path).total() == 1)
        second = await opened("two")  # it does not expect 1.1: that is given up
        assert await dask_worker.tell(first, [(2, "launch", "2.1", command[3])], dask_worker=worker) is None
        assert await dask_worker.watch(first, 0, 0.0, dask_worker=worker) is None
        await until(lambda: not list((tmp_path / "there").glob("*/*/[0-9]*")))
        news = await dask_worker.watch(second, -1, 0.0, dask_worker=worker)
        assert news is not None
        assert news["ended"] == {}
        old = {**second, "version": "0.0", "identity": "me", "host": "a", "directory": "", "keys": []}
        refused = await dask_worker.open_site(old, dask_worker=worker)
        assert "install the same there" in refused["error"]
        await end_sites(cluster)

    asyncio.run(play())
    assert marked(tmp_path) == {"1.1": 1}


def test_a_long_script_and_a_home_that_is_elsewhere_come_along(tmp_path: Path, made: Callable[..., Attempt]) -> None:
    script = tmp_path / "long"
    script.write_text("#!/bin/sh\n" + "# filler\n" * 200_000 + 'echo "$HOME $PWD"\n', encoding="ascii")
    gone = str(tmp_path / "no-such-home")
    attempt = made("1.1", script_file=str(script), home=gone, directory=gone, environment={"PATH": "/usr/bin:/bin", "HOME": gone})

    async def play() -> None:
        cluster, story = Cluster(), Story("a")
        cluster.add("a")
        async with running(cluster, story, tmp_path) as executor:
            executor.launch(attempt)
            await until(lambda: story.ended("1.1"))
        assert story.ended("1.1")[0].status == 0, story.told
        await end_sites(cluster)

    asyncio.run(play())
    home = str(Path.home())
    assert Path(attempt.output).read_text() == f"{home} {home}\n"
