"""The power goes at each sync: only what was synced survives, and every acknowledgement that was sent before it holds."""

from __future__ import annotations

import random
import shutil
import signal
from pathlib import Path

from tests.daemon.harness import Daemon
from tests.daemon.hostile.power_loss import CALLS, Disk, calls_of
from tests.daemon.hostile.scenario import CONFIG, carry_out
from tests.daemon.hostile.test_crash_points import verify
from tests.daemon.hostile.tools import check, needs_strace
from tests.harness import size

pytestmark = needs_strace

STEP = size(11, 1)
"""One in so many moments is tried."""

SEEDS = size(1, 8)
"""Times that unsynced writes survive by chance, for each moment."""


def recorded(directory: Path) -> list[tuple[str, str, str]]:
    """Run the scenario under a trace of what it writes; return what the client was told, in order."""
    directory.mkdir(mode=0o700)
    daemon = Daemon(directory, "--time", "virtual", "--paused", config=CONFIG)
    daemon.state.mkdir(mode=0o700)
    wrap = (
        "strace",
        "-f",
        "-qq",
        "-y",
        "-xx",
        "-s",
        str(1 << 22),
        "-o",
        str(directory / "trace"),
        "-e",
        f"trace={CALLS}",
    )
    daemon.start(wrap=wrap, wait=False)
    assert daemon.process is not None
    daemon.wait_until_up()
    said = carry_out(daemon.socket, str(directory / "copy"))
    assert daemon.process.wait(120) == 0, daemon.log()[-2000:]
    return said


def told_until(said: list[tuple[str, str, str]], replies: int) -> list[tuple[str, str, str]]:
    """Return what the client had been told after so many replies; what it had asked for counts as asked."""
    answers = [place for place, (what, _, _) in enumerate(said) if what != "asked"]
    last = answers[min(replies, len(answers)) - 1] if replies > 0 else -1
    return [each for place, each in enumerate(said) if place <= last or each[0] == "asked"]


def problems_of(directory: Path, files: dict[str, bytes], said: list[tuple[str, str, str]], config: Path) -> list[str]:
    """Start a daemon on what is left of the disk; return what is wrong."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700)
    daemon = Daemon(directory, "--time", "virtual", "--paused", config=config.read_text(encoding="utf-8"))
    for name, content in files.items():
        path = Path(f"{daemon.state}{name}")
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_bytes(content)
    try:
        daemon.start()
        found = verify(daemon, said)
        if "integrity ok" not in check(daemon):
            found.append("the check is not clean")
        daemon.kill(signal.SIGTERM)
    except Exception as error:
        found = [f"{type(error).__name__}: {str(error)[-1500:]}"]
        if daemon.process is not None and daemon.process.poll() is None:
            daemon.kill()
    return found


def test_what_was_acknowledged_survives_a_loss_of_power_at_any_sync(tmp_path: Path) -> None:
    said = recorded(tmp_path / "first")
    first_replies = 1  # the harness asks for the server's status until it is up
    config = tmp_path / "first" / "qbatch.toml"
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
                lost = disk.after_loss(None)
                for chance in chances:
                    points += 1
                    replies = disk.replies - first_replies
                    found = problems_of(tmp_path / "again", disk.after_loss(chance), told_until(said, replies), config)
                    problems += [f"sync {syncs}, {replies} replies: {each}" for each in found]
        disk.take(call, words, result)
    print(f"{syncs} syncs, {points} losses of power, {disk.replies} replies, {len(problems)} bad")
    assert syncs > 40
    assert disk.replies >= sum(what != "asked" for what, _, _ in said)
    assert problems == []
    if STEP > 1:  # a disk that stands still while acknowledgements go on is found out
        assert problems_of(tmp_path / "again", lost, said, config)
