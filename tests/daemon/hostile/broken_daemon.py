"""A daemon with bugs of every kind, for the tests of what it does about them; started as ``python
-m`` with ``qbatch``'s words.

``message`` leaves an inconsistent state and raises; ``trail`` raises.  A pass that takes in a job
named ``poison`` raises, and so does the report of the end of one named ``bad-end``.  An attempt of
one named ``no-start`` cannot be made.
"""

from __future__ import annotations

from typing import Any

import qbatch.daemon.questions  # noqa: F401 - the table of verbs is filled before it is changed
from qbatch.cli.main import main
from qbatch.daemon import attempts
from qbatch.daemon.core import flow, passes
from qbatch.daemon.core.job import BatchState
from qbatch.daemon.core.state import Core, PoolState
from qbatch.daemon.executors.attempt import LOST, Ended, Report
from qbatch.daemon.handlers import verbs
from qbatch.wire import requests


def _message(core: Core, actor: Any, request: Any) -> None:
    core.next_sequence += 7
    core.jobs.clear()
    core.queues["batch"].counts[BatchState.QUEUED] = -3
    raise ZeroDivisionError("a bug in message")


def _trail(service: Any, client: Any, request: Any) -> None:
    raise LookupError("a bug in trail")


_reported, _one_pass, _attempt_of = flow.reported, passes._one_pass, attempts.attempt_of


def _bad_report(core: Core, report: Report) -> None:
    job = flow.job_of_attempt(core, report.key)
    if (
        isinstance(report, Ended)
        and report.status != LOST
        and job is not None
        and job.name == "bad-end"
    ):
        core.jobs.clear()
        raise OverflowError("a bug in reports")
    _reported(core, report)


def _bad_pass(core: Core, pool: PoolState) -> None:
    for key in pool.pending:
        job = core.find(key)
        if job is not None and job.name == "poison":
            pool.pending.clear()
            raise KeyError("a bug in the pass")
    _one_pass(core, pool)


def _bad_attempt(core: Core, job: Any, *rest: Any) -> Any:
    if job.name == "no-start":
        raise UnicodeError("a bug in attempts")
    return _attempt_of(core, job, *rest)


verbs.HANDLERS[requests.Message] = _message
verbs.HANDLERS[requests.Trail] = _trail
flow.reported = _bad_report
passes._one_pass = _bad_pass
attempts.attempt_of = _bad_attempt

if __name__ == "__main__":
    main()
