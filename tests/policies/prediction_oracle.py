"""EASY with predicted run times, from the paper's words alone: plain lists, one instant after
another.

Tsafrir, Etsion and Feitelson, IEEE TPDS 2007.  The prediction is the mean run time of the last jobs
of the same user that have ended (here: a second at least), never above the estimate.  It is the
estimate if there are not that many.  Jobs are killed at their estimates, not at predictions.  A
prediction that is outlived is lengthened by 1, 5, 15, 30 minutes, 1, 2, 5, 10, 20, 50, 100, 100,
... hours, up to the estimate.  Times are microseconds; nothing is kept that can be counted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SECOND = 1_000_000
MINUTES = (1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000)


@dataclass(eq=False)
class Task:
    """One job, and what became of it; ``run`` never exceeds ``estimate``."""

    user: int
    submit: int
    procs: int
    estimate: int
    run: int
    start: int = -1
    end: int = -1
    prediction: int = -1
    first: int = -1
    outlived: int = 0


def lengthened(task: Task, now: int) -> int:
    """Return the next prediction of a job that still runs when its prediction says that it has
    ended."""
    more = MINUTES[task.outlived] if task.outlived < len(MINUTES) else MINUTES[-1]
    return min(now - task.start + more * 60 * SECOND, task.estimate)


def predict(task: Task, ended: Sequence[Task], last: int) -> None:
    """Predict the run time of a job that is submitted; ``ended``: all that have, in order."""
    runs = [each.run for each in ended if each.user == task.user][-last:]
    task.prediction = task.estimate
    if task.user >= 0 and len(runs) == last:
        task.first = task.prediction = min(max(sum(runs) // last, SECOND), task.estimate)


def easy_pass(waiting: list[Task], running: list[Task], procs: int, now: int) -> None:
    """Start the jobs in order; behind the first that does not fit, those that do not delay it by
    the predictions."""

    def begin(task: Task) -> None:
        task.start, task.end = now, now + task.run
        waiting.remove(task)
        running.append(task)

    def free() -> int:
        return procs - sum(task.procs for task in running)

    while waiting and waiting[0].procs <= free():
        begin(waiting[0])
    if not waiting:
        return
    head, room, shadow = waiting[0], free(), now
    for task in sorted(running, key=lambda task: task.start + task.prediction):
        end = task.start + task.prediction
        if room >= head.procs and end > shadow:
            break
        room, shadow = room + task.procs, end
    extra = room - head.procs
    for task in waiting[1:]:
        if task.procs > free():
            continue
        if now + task.prediction <= shadow:
            begin(task)
        elif task.procs <= extra:
            extra -= task.procs
            begin(task)


def easy_by_predictions(tasks: Sequence[Task], procs: int, last: int = 2) -> int:
    """Run jobs, given in order of submission; return how often a prediction was corrected."""
    ended: list[Task] = []
    waiting: list[Task] = []
    running: list[Task] = []
    coming = list(tasks)
    while coming or running:
        wrong = [task for task in running if task.prediction < task.estimate]
        instants = [task.submit for task in coming] + [task.end for task in running]
        now = min(instants + [task.start + task.prediction for task in wrong])
        for task in [task for task in tasks if task in running and task.end == now]:
            running.remove(task)
            ended.append(task)
        for task in wrong:
            if task in running and task.start + task.prediction == now:
                task.prediction = lengthened(task, now)
                task.outlived += 1
        while coming and coming[0].submit == now:
            predict(coming[0], ended, last)
            waiting.append(coming.pop(0))
        easy_pass(waiting, running, procs, now)
    assert not waiting
    return sum(task.outlived for task in tasks)
