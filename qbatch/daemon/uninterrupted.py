"""What must not stop halfway, whoever stops waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


async def to_its_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Do some work and return its result; if the present task is cancelled meanwhile, that happens once the work is done."""
    task, is_cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled:
        if not task.cancelled():
            task.exception()  # nobody waits for it any more
        raise asyncio.CancelledError
    return task.result()
