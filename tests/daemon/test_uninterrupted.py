"""Work that must not stop halfway comes to its end, and a task that waited for it is cancelled
after it."""

from __future__ import annotations

import asyncio

import pytest

from qbatch.daemon.service import to_its_end


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("times", [1, 3])
def test_a_task_is_cancelled_when_its_work_is_done(times: int, fails: bool) -> None:
    done = []

    async def work() -> None:
        for step in range(5):
            await asyncio.sleep(0)
            done.append(step)
        if fails:
            raise ValueError("at the end")

    async def main() -> None:
        task = asyncio.ensure_future(to_its_end(work()))
        for _ in range(times):
            await asyncio.sleep(0)
            task.cancel()
        assert len(done) < 5
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert done == [0, 1, 2, 3, 4]


def test_what_it_returns_and_raises_is_that_of_the_work() -> None:
    async def work(value: int) -> int:
        await asyncio.sleep(0)
        return 6 // value

    assert asyncio.run(to_its_end(work(2))) == 3
    with pytest.raises(ZeroDivisionError):
        asyncio.run(to_its_end(work(0)))
