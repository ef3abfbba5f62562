"""Many submissions from many clients at once."""

from __future__ import annotations

import asyncio
import time

import msgspec

from qbatch.wire.frames import encode
from qbatch.wire.requests import Spec, Submit

_encode = msgspec.json.Encoder().encode
_LONG = 10**12


def submission(number: int) -> Submit:
    """Return one of a thousand different submissions."""
    resources = {"select": f"1:ncpus={1 + number % 16}", "walltime": str(600 + number % 50 * 60)}
    return Submit(
        id=1,
        spec=Spec(
            script="true\n", directory="/tmp", resources=resources, runtime=_LONG, name=f"j{number}"
        ),
    )


FRAMES = [encode(_encode(submission(number))) for number in range(1000)]


async def _client(path: str, jobs: int, depth: int, waits: list[float]) -> None:
    reader, writer = await asyncio.open_unix_connection(path)
    sent: list[float] = []
    done = 0
    while done < jobs:
        if len(sent) < jobs and len(sent) - done <= depth // 2:
            count = min(depth - (len(sent) - done), jobs - len(sent))
            writer.write(b"".join(FRAMES[(len(sent) + offset) % 1000] for offset in range(count)))
            sent += [time.perf_counter()] * count
        size = int.from_bytes(await reader.readexactly(4), "big")
        body = await reader.readexactly(size)
        assert b'"result"' in body, body
        waits.append(time.perf_counter() - sent[done])
        done += 1
    writer.close()


def flood(path: str, jobs: int, clients: int, depth: int) -> tuple[float, list[float]]:
    """Submit from many clients at once; return the seconds it took and how long each
    acknowledgement took."""
    waits: list[float] = []

    async def all_of_them() -> None:
        await asyncio.gather(
            *(_client(path, jobs // clients, depth, waits) for _ in range(clients))
        )

    begun = time.perf_counter()
    asyncio.run(all_of_them())
    return time.perf_counter() - begun, sorted(waits)
