"""The short commands about jobs: ``qdel``, ``qhold``, ``qrls``, ``qmove``, ``qorder``, ``qrerun``, ``qrun``, ``qmsg``, ``qsig``.
"""

from __future__ import annotations

import re

from qbatch.cli.pbs.command import NO_CONNECTION, TAKEN, Call, Command, CommandFault, UsageFault, operands_of
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import Delete, ForceStart, Hold, JobStatus, Message, Move, Order, Release, Rerun, Signal


def _read_w(values: list[str]) -> tuple[bool, float | None]:
    """Return whether to remove the jobs at once, and the seconds between the two signals."""
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


def _qdel(call: Call) -> int:
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


qdel = Command(
    "qdel",
    "end jobs; a waiting job leaves its queue, a running job gets SIGTERM and, later, SIGKILL",
    "qdel [-W force|delay=seconds|suppress_email=N] [-x] job_identifier ...",
    {
        "a": TAKEN,
        "m": ("message", "Torque: a note in the record of the jobs."),
        "p": ("", "Torque: remove the jobs at once, as -W force."),
        "t": ("array", "Ignored; name the subjobs in the identifier, as in 5[1-3]."),
        "W": ("force|delay=N", "force: remove at once; delay=N (or N): seconds from TERM to KILL."),
        "x": ("", "Remove the history of finished jobs too."),
    },
    _qdel,
)


def _hold_command(name: str, verb: str, request: type[Hold] | type[Release]) -> Command:
    def act(call: Call) -> int:
        kinds = call.given.last("h", "u").strip()
        if not kinds or set(kinds) - set("uospn") or ("n" in kinds and len(kinds) > 1):
            raise UsageFault("illegal -h value")
        jobs = operands_of(call)
        # The letter p is the hold for a bad password in PBS, which does not exist here; n is no hold.
        letters = kinds.replace("p", "").replace("n", "")
        return call.act(lambda ids: request(jobs=ids, kinds=letters), jobs) if letters else call.code

    text = f"{verb} holds (``-h u|o|s``, by default user holds)"
    options = {
        "h": ("hold_list", "Kinds of hold: letters of u (user), o (operator), s (system); n: none."),
        "t": ("array", "Ignored; name the subjobs in the identifier, as in 5[1-3]."),
    }
    return Command(name, text, f"{name} [-h hold_list] job_identifier ...", options, act)


qhold = _hold_command("qhold", "place", Hold)
qrls = _hold_command("qrls", "remove", Release)


def _qmove(call: Call) -> int:
    destination, *jobs = operands_of(call, 2)
    if not destination or destination[0].isdigit():
        raise UsageFault(f"illegally formed destination: {destination}")
    if not call.is_here(destination):
        return call.code
    return call.act(lambda ids: Move(jobs=ids, destination=destination), jobs)


qmove = Command("qmove", "put waiting jobs into another queue", "qmove destination job_identifier ...", {}, _qmove)


def _qorder(call: Call) -> int:
    operands = operands_of(call, 2)
    if len(operands) != 2:
        raise UsageFault("two jobs are needed")
    jobs = call.job_ids(operands)
    if len(jobs) == 2:
        call.report(call.ask(Order(first=jobs[0], second=jobs[1]), Outcomes).outcomes)
    return call.code


qorder = Command(
    "qorder", "exchange the places of two waiting jobs in their queue", "qorder job1_identifier job2_identifier", {}, _qorder
)


def _qrerun(call: Call) -> int:
    value = call.given.last("W")
    if value not in ("", "force"):
        raise UsageFault("illegal -W value")
    is_forced = value == "force" or call.given.has("f")
    return call.act(lambda ids: Rerun(jobs=ids, is_forced=is_forced), operands_of(call))


qrerun = Command(
    "qrerun",
    "stop running jobs and requeue them",
    "qrerun [-W force] job_identifier ...",
    {"f": ("", "As -W force."), "m": TAKEN, "W": ("force", "Also jobs that are not rerunnable.")},
    _qrerun,
)


START_REFUSED = 2
"""Exit code if the server refuses a start, whatever its reason, as in OpenPBS (qrun.c)."""


def _hosts(text: str) -> tuple[str, ...]:
    """Return the hosts of ``n1+n2``, also in brackets as in ``exec_vnode``: ``(n1)+(n2)``.

    Raises:
        UsageFault: a name is missing.
        CommandFault: a part is no host, or names an amount of resources of a host.
    """
    names = tuple(part.strip(" ()") for part in text.split("+"))
    if not all(names):
        raise UsageFault("illegal -H value")
    for name in names:
        if not re.fullmatch(r"[\w.-]+", name):
            raise CommandFault(f"illegal -H value: {name[:80]!r} is no host; write n1+n2: the job says how much it needs", 2)
    return names


def _qrun(call: Call) -> int:
    hosts = _hosts(call.given.last("H")) if call.given.has("H") else ()
    code = call.act(lambda ids: ForceStart(jobs=ids, hosts=hosts), operands_of(call))
    return code if code == NO_CONNECTION else min(code, START_REFUSED)


qrun = Command(
    "qrun",
    """start waiting jobs now, whatever the policy would do, if their resources are free.

Only operators may do this.  ``-H n1+n2`` names the hosts; without it the server chooses them.  The server refuses a job that is
held, waits for a time, is at a run limit or does not fit into the free resources, and names the reason.  It stops no running job
for it.  The exit code is 2 if the server refuses a start, as in OpenPBS.
    """,
    "qrun [-a] [-H host[+host...]] job_identifier ...",
    {"a": ("", "Ignored; the answer always comes with the start."), "H": ("host[+host...]", "Start the jobs on these hosts.")},
    _qrun,
)


def _qmsg(call: Call) -> int:
    text, *jobs = operands_of(call, 2)
    if not text:
        raise UsageFault("no message string")
    files = "".join(letter for letter in "EO" if call.given.has(letter)) or "E"
    return call.act(lambda ids: Message(jobs=ids, text=text, files=files), jobs)


qmsg = Command(
    "qmsg",
    "append a line to the output (-O) or the error file (-E, the default) of running jobs",
    "qmsg [-E] [-O] message_string job_identifier ...",
    {"E": ("", "Append to the error file (the default)."), "O": ("", "Append to the output file.")},
    _qmsg,
)


def _qsig(call: Call) -> int:
    signal = call.given.last("s", "SIGTERM").strip()
    if not signal:
        raise UsageFault("illegal -s value")
    return call.act(lambda ids: Signal(jobs=ids, signal=signal), operands_of(call))


qsig = Command(
    "qsig",
    "send a signal to running jobs: a name, a number, suspend or resume",
    "qsig [-a] [-s signal] job_identifier ...",
    {"a": TAKEN, "s": ("signal", "TERM (the default), SIGTERM, 15, suspend or resume.")},
    _qsig,
)
