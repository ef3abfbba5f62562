"""What the monitor looks like, held to pictures that are kept: light and dark, small and large;
those of the README too.

Look at what has changed and make the pictures anew with ``QBATCH_NEW_PICTURES=1 pytest
tests/tui/test_screenshots.py``.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from qbatch.cli.main import run as run_command
from qbatch.tui.app import Monitor
from qbatch.tui.playback import Playback
from qbatch.tui.schedule_recording import open_recording
from tests.tui.scene import Scene
from tests.tui.test_keys import settle

KEPT = Path(__file__).parent / "pictures"
SHOWN = Path(__file__).resolve().parents[2] / "docs" / "images"


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def picture(
    size: tuple[int, int],
    theme: str,
    keys: tuple[str, ...],
    source: Any = None,
    before: Callable[[], Awaitable[None]] | None = None,
) -> str:
    """Return the screen as SVG, without the number that Textual makes anew each time."""

    async def run() -> str:
        app = Monitor(source or Scene(), theme)
        async with app.run_test(size=size) as pilot:
            for _ in range(3):  # answers come, are shown, and nothing more is new
                await settle(pilot)
            if before is not None:
                await before()
            for key in keys:
                await pilot.press(key)
                await settle(pilot)
            for _ in range(3):
                await settle(pilot)
            return app.export_screenshot(title="qbatch top", simplify=True)

    text = asyncio.run(run())
    found = re.search(r"terminal-(\d+)-", text)
    assert found is not None
    return text.replace(found.group(1), "0")


CASES = [
    *(
        (f"{name}-{theme}-{width}x{height}", (width, height), f"textual-{theme}", keys)
        for theme in ("dark", "light")
        for name, (width, height), keys in (
            ("all", (160, 50), ()),
            ("why", (160, 50), ("w",)),
            ("waiting", (80, 24), ()),
            ("hosts", (80, 24), ("1",)),
            ("timeline", (80, 24), ("2",)),
            ("shadows", (80, 24), ("9",)),
        )
    ),
    ("all-ansi-120x40", (120, 40), "ansi-dark", ()),
]


@pytest.mark.parametrize(("name", "size", "theme", "keys"), CASES, ids=[case[0] for case in CASES])
def test_the_monitor_looks_as_it_did(
    name: str, size: tuple[int, int], theme: str, keys: tuple[str, ...]
) -> None:
    assert _is_as_kept(KEPT / f"{name}.svg", picture(size, theme, keys))


def test_the_picture_of_the_readme_is_what_the_monitor_draws(tmp_path: Path) -> None:
    out = tmp_path / "result"
    assert (
        run_command(["replay", "traces/demo-128.swf", "-p", "easy", "--out", str(out), "--quiet"])
        == 0
    )
    source = Playback(open_recording(str(out)), wall=lambda: 0.0)
    source.is_paused = True

    async def jump() -> None:
        played = source.progress()
        assert played is not None
        await source.drive("jump", at=source.recording.at[0] + round(0.37 * played[1]))

    assert _is_as_kept(
        SHOWN / "monitor.svg", picture((150, 44), "textual-dark", ("1",), source, jump)
    )
    readme = (SHOWN.parents[1] / "README.md").read_text(encoding="utf-8")
    assert "docs/images/monitor.svg" in readme


def test_without_colours_letters_distinguish_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def run() -> str:
        app = Monitor(Scene())
        assert app.no_color
        async with app.run_test(size=(160, 50)) as pilot:
            await settle(pilot)
            hosts = app.query_one("#hosts")
            return "\n".join(
                "".join(segment.text for segment in hosts.render_line(y))
                for y in range(hosts.size.height)
            )

    shown = asyncio.run(run())
    assert re.search(r"n2 +(D *){8}(c *){8}", shown), shown
    assert "■" not in shown


def test_nothing_that_a_terminal_obeys_reaches_the_screen() -> None:
    for keys in ((), ("4", "down", "down", "down", "enter"), ("6",), ("1", "enter")):
        text = picture((160, 50), "textual-dark", keys)
        assert "\x1b" not in text
        assert "tr?[31mudy" in text.replace("&#160;", " ") or keys[:1] == ("1",)


def _is_as_kept(path: Path, text: str) -> bool:
    """Whether a picture is the one that is kept; the new one is written next to it where it is
    not."""
    if os.environ.get("QBATCH_NEW_PICTURES"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    kept = path.read_text(encoding="utf-8")
    if kept != text:
        new = path.with_suffix(".new.svg")
        new.write_text(text, encoding="utf-8")
    return kept == text
