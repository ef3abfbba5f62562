"""EASY backfilling as a plain Python loop over lists: a fair yardstick, not a straw man."""

from __future__ import annotations

import heapq
from bisect import insort

from qbatch.model.record import Workload


def plain_easy(work: Workload, procs: int) -> list[int]:
    """Return the start of each job."""
    submit, size = work.submit.tolist(), work.procs.tolist()
    estimate, run = work.estimate.tolist(), work.run.tolist()
    starts = [-1] * len(submit)
    queue: list[int] = []
    ends: list[tuple[int, int]] = []
    expected: list[tuple[int, int]] = []
    free, arrived = procs, 0

    def start(row: int, now: int) -> None:
        nonlocal free
        starts[row] = now
        free -= size[row]
        heapq.heappush(ends, (now + run[row], row))
        insort(expected, (now + estimate[row], row))

    while arrived < len(submit) or ends:
        now = min(
            ends[0][0] if ends else 1 << 62, submit[arrived] if arrived < len(submit) else 1 << 62
        )
        while ends and ends[0][0] == now:
            row = heapq.heappop(ends)[1]
            expected.remove((starts[row] + estimate[row], row))
            free += size[row]
        while arrived < len(submit) and submit[arrived] == now:
            queue.append(arrived)
            arrived += 1
        while queue and size[queue[0]] <= free:
            start(queue.pop(0), now)
        if len(queue) < 2 or free == 0:
            continue
        available, shadow = free, now
        for end, row in expected:
            if available >= size[queue[0]] and end != shadow:
                break
            available, shadow = available + size[row], end
        extra = available - size[queue[0]]
        left = queue[:1]
        for row in queue[1:]:
            in_time = now + estimate[row] <= shadow
            if size[row] <= free and (in_time or size[row] <= extra):
                extra -= 0 if in_time else size[row]
                start(row, now)
            else:
                left.append(row)
        queue = left
    return starts
