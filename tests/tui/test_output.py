"""The output of a job as it is followed: what is shown is what the file says, however it was
written."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.app import App, ComposeResult

from qbatch.tui.screens.output import Follow


class _Window(App[None]):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def compose(self) -> ComposeResult:
        yield Follow(str(self.path))


def test_lines_are_shown_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "output"

    async def run() -> None:
        app = _Window(path)
        async with app.run_test():
            follow = app.query_one(Follow)

            def after(data: bytes) -> list[str]:
                with path.open("ab") as file:
                    file.write(data)
                follow.look()
                return [line.rstrip() for line in follow.lines]

            assert "No such file" in follow.lines[0]
            assert after(b"") == []
            assert after(b"no end yet") == ["no end yet"]
            assert after(b", and on\n\n") == ["no end yet, and on", ""]
            whole = "gr\u00fc\u00df".encode()
            assert after(whole[:3]) == ["no end yet, and on", "", "gr"]
            assert after(whole[3:]) == ["no end yet, and on", "", "gr\u00fc\u00df"]
            assert after(b"\r100 %\r") == ["no end yet, and on", "", "100 %"]
            assert after(b"\n\x1b[2Jx\n")[2:] == ["100 %", "?[2Jx"]
            path.unlink()
            assert after(b"anew\n") == ["anew"]
            path.write_bytes(b"")
            assert after(b"") == []
            assert after(b"z" * 50_000)[0].startswith("zzz")
            assert len(follow.lines) == 1

    asyncio.run(run())
