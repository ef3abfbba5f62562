"""``qdel``: end jobs; a waiting one leaves its queue, a running one gets SIGTERM and, later, SIGKILL."""

from __future__ import annotations

import re
from typing import NoReturn

from qbatch.cli.pbs.command import Call, Command, Surroundings, UsageFault, operands_of
from qbatch.wire.requests import Delete, JobStatus

USAGE = "qdel [-W force|delay=seconds|suppress_email=N] [-x] job_identifier ..."


def _read_w(values: list[str]) -> tuple[bool, float | None]:
    """Return whether the jobs are removed at once, and the seconds between the two signals."""
    is_forced, grace = False, None
    for value in values:
        for part in value.split(","):
            found = re.fullmatch(r"(?:delay=)?([0-9]{1,6})", part.strip())
            if part.strip() == "force":
                is_forced = True
            elif found is not None:
                grace = float(found[1])
            elif not re.fullmatch(r"suppress_email=-?[0-9]+", part.strip()):
                raise UsageFault("illegal -W value")
    return is_forced, grace


def _act(call: Call) -> int:
    given = call.given
    is_forced, grace = _read_w([value for letter, value in given.options if letter == "W"])
    jobs = operands_of(call)
    if any(job.lower() == "all" for job in jobs):
        import getpass

        mine = (getpass.getuser(),)
        named = [job for job in jobs if job.lower() != "all"]
        jobs = named + [job.id for job in call.session.jobs(JobStatus(users=mine, is_brief=True))]
    is_forced = is_forced or given.has("p")
    message = given.last("m")
    with_history = given.has("x")
    return call.act(
        lambda ids: Delete(jobs=ids, is_forced=is_forced, with_history=with_history, grace=grace, message=message), jobs
    )


COMMAND = Command("qdel", "W:xam:pt:", USAGE, _act)


def run(arguments: list[str], here: Surroundings | None = None) -> int:
    """Run ``qdel`` and return its exit code."""
    return COMMAND.run(arguments, here)


def main() -> NoReturn:
    """Run ``qdel`` as a program."""
    COMMAND.main()
