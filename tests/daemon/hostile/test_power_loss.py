"""The power goes at each sync: only what was synced survives, and every acknowledgement that was
sent before it holds."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from qbatch.daemon.executors.attempt import LOST
from qbatch.wire.requests import Request
from tests.daemon.harness import Daemon
from tests.daemon.hostile.power_loss import CALLS, Disk, calls_of
from tests.daemon.hostile.scenario import CONFIG, carry_out, operations, real_jobs
from tests.daemon.hostile.test_crash_points import verify
from tests.daemon.hostile.tools import REAL, all_jobs, check, needs_strace
from tests.harness import size

pytestmark = needs_strace

STEP = size(11, 1)
"""One in so many moments is tried."""

SEEDS = size(1, 8)
"""Times that unsynced writes survive by chance, for each moment."""

BOOTED = size(25, 1)
"""At one in so many calls of an attempt a daemon goes on from what is left."""

FIRST_REPLIES = 1
"""The harness asks for the server's status until it is up."""

VIRTUAL = ("--time", "virtual", "--paused")
NAMES = {"1": "first", "2": "second", "3": "third"}
"""The scripts that run for real, by the number of their job."""


def recorded(
    directory: Path, config: str, asked: Iterable[tuple[str, Request, type]], *options: str
) -> list[tuple[str, str, str]]:
    """Carry operations out under a trace of what is written; return what the client asked and was
    answered, in order."""
    directory.mkdir(mode=0o700)
    daemon = Daemon(directory, *options, config=config)
    daemon.state.mkdir(mode=0o700)
    trace = ("-o", str(directory / "trace"), "-e", f"trace={CALLS}")
    daemon.start(wrap=("strace", "-f", "-qq", "-y", "-xx", "-s", str(1 << 22), *trace), wait=False)
    assert daemon.process is not None
    daemon.wait_until_up()
    said = carry_out(daemon.socket, asked)
    assert daemon.process.wait(120) == 0, daemon.log()[-2000:]
    return said


def received_until(said: list[tuple[str, str, str]], replies: int) -> list[tuple[str, str, str]]:
    """Return what the client had read after so many replies; what it had asked for counts as
    asked."""
    answers = [place for place, (what, _, _) in enumerate(said) if what != "asked"]
    last = answers[min(replies, len(answers)) - 1] if replies > 0 else -1
    return [each for place, each in enumerate(said) if place <= last or each[0] == "asked"]


def problems_of(
    daemon: Daemon, files: dict[str, bytes], verified: Callable[[Daemon], list[str]]
) -> list[str]:
    """Start a daemon on what is left of the disk; return what is wrong."""
    shutil.rmtree(daemon.state, ignore_errors=True)
    for name, content in files.items():
        path = Path(f"{daemon.state}{name}")
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_bytes(content)
    try:
        daemon.start()
        found = verified(daemon)
        if "integrity ok" not in check(daemon):
            found.append("the check is not clean")
        daemon.kill(signal.SIGTERM)
    except Exception as error:
        found = [f"{type(error).__name__}: {str(error)[-1500:]}"]
        if daemon.process is not None and daemon.process.poll() is None:
            daemon.kill()
    return found


def test_what_was_acknowledged_survives_a_loss_of_power_at_any_sync(tmp_path: Path) -> None:
    said = recorded(tmp_path / "first", CONFIG, operations(str(tmp_path / "copy")), *VIRTUAL)
    (tmp_path / "again").mkdir(mode=0o700)
    again = Daemon(tmp_path / "again", *VIRTUAL, config=CONFIG)
    disk = Disk(tmp_path / "first" / "state")
    problems: list[str] = []
    syncs = points = 0
    lost: dict[str, bytes] = {}
    for call, words, result in calls_of(tmp_path / "first" / "trace"):
        is_sync = call in ("fsync", "fdatasync") and disk.root in words
        if is_sync:
            syncs += 1
            if syncs % STEP == 0:
                chances = [None, *(random.Random(f"{syncs}-{seed}") for seed in range(SEEDS))]
                lost = lost or disk.after_loss(None)
                for chance in chances:
                    points += 1
                    replies = disk.replies - FIRST_REPLIES
                    received = received_until(said, replies)
                    found = problems_of(
                        again, disk.after_loss(chance), partial(verify, said=received)
                    )
                    problems += [f"sync {syncs}, {replies} replies: {each}" for each in found]
        disk.take(call, words, result)
    print(f"{syncs} syncs, {points} losses of power, {disk.replies} replies, {len(problems)} bad")
    assert syncs > 40
    assert disk.replies >= sum(what != "asked" for what, _, _ in said)
    assert problems == [], "\n".join(problems)
    if STEP > 1:  # a disk that stands still while acknowledgements go on is found out
        assert problems_of(again, lost, partial(verify, said=said))


def test_what_supervisors_wrote_survives_a_loss_of_power_and_no_script_runs_twice(
    tmp_path: Path,
) -> None:
    """At each call by which something of an attempt is written; at some of them a daemon goes on
    from what is left."""
    mark = tmp_path / "ran"
    said = recorded(tmp_path / "first", REAL, real_jobs(str(mark)))
    assert [what for what, _, _ in said] == ["asked", "done"] * 8
    (tmp_path / "again").mkdir(mode=0o700)
    again = Daemon(tmp_path / "again", config=REAL)
    disk = Disk(tmp_path / "first" / "state")
    run = f"{disk.root}/run"
    attempt, script = (
        re.compile(rf"{re.escape(run)}/(\d+)\.[^/]*"),
        re.compile("/scripts/[0-9a-f]{64}( |$)"),
    )
    began, problems, points, boots = "", [], 0, 0
    for call, words, result in calls_of(tmp_path / "first" / "trace"):
        if run in words or _hidden(run) in words or str(mark) in words:
            points += 1
            for seed in range(SEEDS):
                left = disk.after_loss(random.Random(f"{points}-{seed}") if seed else None)
                received = received_until(said, disk.replies - FIRST_REPLIES)
                found = (
                    []
                    if ("done", "upload", "") not in received or script.search(" ".join(left))
                    else ["the script is gone"]
                )
                for path, job in [
                    (path, match[1]) for path in disk.names if (match := attempt.fullmatch(path))
                ]:
                    is_over = call == "rename" and f'"{_hidden(path)}"' in words
                    found += _lacking(
                        left, path.removeprefix(disk.root), int(job), NAMES[job] in began, is_over
                    )
                if points % BOOTED == 0 and not found:
                    boots += 1
                    mark.write_text(began, encoding="utf-8")
                    found = problems_of(again, left, partial(_went_on, said=received, mark=mark))
                problems += [
                    f"call {points} ({call}), begun {began.split()}: {each}" for each in found
                ]
        if call == "write" and str(mark) in words:
            began += f"{list(NAMES.values())[len(began.split())]}\n"
        disk.take(call, words, result)
    print(f"{points} calls, {boots} daemons, {len(problems)} bad")
    assert began.split() == list(NAMES.values())
    assert points > 60
    assert boots >= 3
    assert problems == [], "\n".join(problems)


def _hidden(path: str) -> str:
    return "".join(f"\\x{letter:02x}" for letter in path.encode())


def _lacking(
    left: dict[str, bytes], attempt: str, code: int, has_begun: bool, is_over: bool
) -> list[str]:
    """Return what is wrong with the files of an attempt.

    Where its script has begun the claim is there and whole.  An exit record is whole as soon as it
    has its name, and it is there before the run directory goes.
    """
    problems = []
    if has_begun and not _is_whole(left.get(f"{attempt}/claim"), "pid"):
        problems.append(
            f"{attempt}: its script has begun, and its claim is {left.get(f'{attempt}/claim')!r}"
        )
    ending = left.get(f"{attempt}/exit.json", b"" if is_over else None)
    if ending is not None and (not _is_whole(ending, "at") or json.loads(ending)["status"] != code):
        problems.append(f"{attempt}: its exit record is {ending[:80]!r}")
    return problems


def _is_whole(text: bytes | None, key: str) -> bool:
    try:
        return key in json.loads(text or b"")
    except ValueError:
        return False


def _went_on(daemon: Daemon, said: list[tuple[str, str, str]], mark: Path) -> list[str]:
    """Let every job end; return what is wrong with what was acknowledged, and which script ran
    twice or never."""
    jobs = all_jobs(daemon)
    done = {name: job for what, name, job in said if what == "done"}
    problems = [f"{name} is not there" for name, job in done.items() if job and job not in jobs]
    ended = {job: daemon.until(job, "F") for job in jobs}
    ran = mark.read_text(encoding="utf-8").split()
    for number, name in NAMES.items():
        if name in done and (job := ended.get(done[name])) is not None:
            # What it did is not known, and that is said.
            is_lost = job.exit_status == LOST and f"end of {name}" not in done
            if ran.count(name) > 1 or (
                not is_lost and (not ran.count(name) or job.exit_status != int(number))
            ):
                problems.append(
                    f"{name} ran {ran.count(name)} times and ended with {job.exit_status}: "
                    f"{job.comment}"
                )
    return problems
