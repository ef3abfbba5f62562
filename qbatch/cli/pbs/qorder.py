"""``qorder``: exchange the places of two waiting jobs in their queue."""

from __future__ import annotations

from typing import NoReturn

from qbatch.cli.pbs.command import Call, Command, Surroundings, UsageFault, operands_of
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import Order


def _act(call: Call) -> int:
    operands = operands_of(call, 2)
    if len(operands) != 2:
        raise UsageFault("two jobs are needed")
    jobs = call.job_ids(operands)
    if len(jobs) == 2:
        call.report(call.ask(Order(first=jobs[0], second=jobs[1]), Outcomes).outcomes)
    return call.code


COMMAND = Command("qorder", "", "qorder job1_identifier job2_identifier", _act)


def run(arguments: list[str], here: Surroundings | None = None) -> int:
    """Run ``qorder`` and return its exit code."""
    return COMMAND.run(arguments, here)


def main() -> NoReturn:
    """Run ``qorder`` as a program."""
    COMMAND.main()
