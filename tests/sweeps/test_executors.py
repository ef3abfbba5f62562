"""Executors of the runs: the same outcomes here, in processes and on a Dask cluster, also when
workers are lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from qbatch.model.errors import InputError, QbatchError, UsageError
from qbatch.sweeps.executors import LOSSES, CaseOutcome, Place, each_outcome, place_of

HERE = Place(1)


def square(context: dict[str, int], case: int) -> int:
    if case == context["bad"]:
        raise ValueError("this case\nis bad")
    return case * case + context["more"]


def deadly(context: str, case: int) -> int:
    """Kill the process that makes case 3 as often as the file says."""
    path = Path(context)
    if case == 3 and len(path.read_text()) > 0:
        path.write_text(path.read_text()[1:])
        os.kill(os.getpid(), signal.SIGKILL)
    return case


def slow(_context: None, case: float) -> float:
    time.sleep(case)
    return case


def plain(case: int) -> int:
    if case > 4:
        raise ValueError("too large")
    return -case


def by_case(outcomes: Iterator[CaseOutcome]) -> dict[int, tuple[object, str | None]]:
    return {outcome.case: (outcome.value, outcome.error) for outcome in outcomes}


class Cluster(NamedTuple):
    """A scheduler and workers, each a process of its own."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def begun(folder: Path, count: int) -> Iterator[Cluster]:
    """Start a cluster, and end it."""
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    file = folder / "scheduler.json"
    common = {
        "cwd": folder,
        "env": environment,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    of_scheduler = ["distributed.cli.dask_scheduler", "--port", "0", "--scheduler-file", str(file)]
    of_worker = ["distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1"]
    both = ["--host", "127.0.0.1", "--no-dashboard"]
    started = [
        subprocess.Popen([sys.executable, "-m", *words, *both], **common)  # type: ignore[call-overload]
        for words in [of_scheduler, *[of_worker] * count]
    ]
    from distributed import Client

    deadline = time.monotonic() + 120
    while not file.is_file():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with Client(scheduler_file=str(file), set_as_default=False, timeout=60) as client:
        client.wait_for_workers(count, timeout=120)
        address = client.scheduler.address
    try:
        yield Cluster(address, started[0], started[1:])
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler with two workers."""
    with begun(tmp_path_factory.mktemp("dask"), 2) as found:
        yield found.address


def test_outcomes_are_the_same_wherever_they_are_made(cluster: str) -> None:
    context, cases = {"bad": 7, "more": 1}, range(300)
    here = by_case(each_outcome(square, cases, HERE, context))
    assert here == {
        case: (case * case + 1, None) if case != 7 else (None, "ValueError: this case is bad")
        for case in cases
    }
    assert by_case(each_outcome(square, cases, Place(2), context)) == here
    assert by_case(each_outcome(square, cases, Place(address=cluster), context)) == here


def test_cases_are_taken_when_there_is_space_for_them() -> None:
    taken = []

    def cases() -> Iterator[float]:
        for case in range(1000):
            taken.append(case)
            yield 0.3

    outcomes = each_outcome(slow, cases(), Place(2))
    next(outcomes)
    assert len(taken) < 20
    outcomes.close()


def test_a_program_without_a_guard_and_its_own_processes_are_left_alone(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing, time\n"
        "from qbatch.sweeps.executors import Place, each_outcome\n"
        "from tests.sweeps.test_executors import slow\n"
        "print('begun')\n"
        "own = multiprocessing.get_context('fork').Process(target=time.sleep, args=(60,))\n"
        "own.start()\n"
        "assert [one.value for one in each_outcome(slow, [0.01] * 4, Place(2))] == [0.01] * 4\n"
        "assert own.is_alive()\n"
        "own.kill()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout) == (0, "begun\n"), done.stderr


def test_an_error_with_odd_letters_is_an_outcome() -> None:
    (one,) = each_outcome(odd, [1], HERE)
    assert one.error == "ValueError: \\udc80"


def odd(_context: None, _case: int) -> None:
    raise ValueError("\udc80")


@pytest.mark.parametrize(("kills", "is_lost"), [(1, False), (LOSSES - 1, False), (LOSSES, True)])
def test_a_lost_process_costs_its_cases_a_retry(tmp_path: Path, kills: int, is_lost: bool) -> None:
    path = tmp_path / "kills"
    path.write_text("x" * kills)
    found = {
        outcome.case: outcome for outcome in each_outcome(deadly, range(8), Place(2), str(path))
    }
    assert set(found) == set(range(8))
    for case, outcome in found.items():
        assert outcome.is_lost == (is_lost and case == 3)
        assert outcome.value == (None if outcome.is_lost else case)
    if is_lost:
        assert "worker was lost 3 times" in str(found[3].error)


def test_a_lost_worker_of_a_cluster_costs_its_cases_a_retry(cluster: str, tmp_path: Path) -> None:
    path = tmp_path / "kills"
    path.write_text("x")
    found = by_case(each_outcome(deadly, range(8), Place(address=cluster), str(path)))
    assert found == {case: (case, None) for case in range(8)}
    assert not path.read_text(), "a worker was killed"


def test_a_result_that_is_lost_on_its_way_is_made_again(
    cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed.client import Future, FutureCancelledError

    whole, lost = Future.result, []

    def result(task: Future, timeout: object = None) -> object:
        if len(lost) < 2:
            lost.append(task.key)
            raise FutureCancelledError(task.key, "its worker is gone")
        return whole(task, timeout)

    monkeypatch.setattr(Future, "result", result)
    found = by_case(each_outcome(square, range(8), Place(address=cluster), {"bad": -1, "more": 0}))
    assert found == {case: (case * case, None) for case in range(8)}
    assert len(lost) == 2


def test_a_scheduler_that_is_lost_ends_the_sweep_with_a_word(tmp_path: Path) -> None:
    with begun(tmp_path, 1) as found:
        outcomes = each_outcome(slow, [0.1] * 10_000, Place(address=found.address))
        assert next(outcomes).value == 0.1
        found.scheduler.kill()
        with pytest.raises(QbatchError, match="the scheduler is gone; finished runs are kept"):
            list(outcomes)


def test_an_address_that_does_not_answer_is_named() -> None:
    with pytest.raises(
        InputError, match=r"dask=tcp://127\.0\.0\.1:9: no Dask scheduler answers there"
    ):
        list(each_outcome(square, [1], Place(address="tcp://127.0.0.1:9")))


def test_workers_with_another_program_are_refused(
    cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qbatch.sweeps import executors

    monkeypatch.setattr(executors, "program_digest", _other_digest)
    with pytest.raises(InputError, match="has another version of qbatch"):
        list(each_outcome(square, [1], Place(address=cluster), {"bad": 0, "more": 0}))


def _other_digest() -> str:
    return f"the program of {os.getpid()}"


@pytest.mark.parametrize("text", ["remote", "local:0", "local:x", "dask=", "dask", "local=2"])
def test_a_place_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--on"):
        place_of(text)


def test_places_by_their_texts() -> None:
    assert place_of("local:3") == Place(3)
    assert place_of("local") == Place()
    assert place_of("dask=tcp://10.0.0.1:8786") == Place(address="tcp://10.0.0.1:8786")
