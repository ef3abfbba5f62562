"""The short commands about jobs: ``qdel``, ``qhold``, ``qrls``, ``qmove``, ``qorder``, ``qrerun``,
``qrun``, ``qmsg``, ..."""

from __future__ import annotations

import re

from qbatch.cli.pbs.command import (
    MESSAGES,
    NO_CONNECTION,
    TAKEN,
    UNKNOWN_JOB,
    Call,
    Command,
    CommandFault,
    UsageFault,
    code_of,
    command,
    operands_of,
)
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import (
    Delete,
    ForceStart,
    Hold,
    JobStatus,
    Message,
    Move,
    Order,
    Release,
    Rerun,
    Signal,
)


@command(
    "\n\tqdel [-W force|suppress_email=X] [-x] job_identifier...",
    {
        "a": TAKEN,
        "m": ("message", "Torque: a note in the record of the jobs."),
        "p": ("", "Torque: remove the jobs at once, as -W force."),
        "t": ("array", "Ignored; name the subjobs in the identifier, as in 5[1-3]."),
        "W": ("force|delay=N", "force: remove at once; delay=N (or N): seconds from TERM to KILL."),
        "x": ("", "Take finished jobs too."),
    },
    torque="ampt",
)
def qdel(call: Call) -> int:
    """End jobs; a waiting job leaves its queue, a running job gets SIGTERM and, later, SIGKILL."""
    given = call.given
    is_forced, grace = given.has("p"), None
    for part in (
        ",".join(value for letter, value in given.options if letter == "W").split(",")
        if given.has("W")
        else ()
    ):
        found = re.fullmatch(r"(?:delay=)?([0-9]{1,6})", part.strip())
        if part.strip() == "force":
            is_forced = True
        elif found is not None:
            grace = float(found[1])
        elif not re.fullmatch(r"suppress_email=-?[0-9]+", part.strip()):
            raise UsageFault("illegal -W value")
    jobs = operands_of(call)
    if any(job.lower() == "all" for job in jobs):
        import getpass

        mine = (getpass.getuser(),)
        named = [job for job in jobs if job.lower() != "all"]
        jobs = named + [job.id for job in call.session.jobs(JobStatus(users=mine, is_brief=True))]
    message, with_history = given.last("m"), given.has("x")
    return call.act(
        lambda ids: Delete(
            jobs=ids, is_forced=is_forced, with_history=with_history, grace=grace, message=message
        ),
        jobs,
    )


def _hold_command(name: str, verb: str, request: type[Hold] | type[Release]) -> Command:
    def act(call: Call) -> int:
        kinds = call.given.last("h", "u").strip()
        if not kinds or set(kinds) - set("uospn") or ("n" in kinds and len(kinds) > 1):
            raise UsageFault("illegal -h value")
        jobs = operands_of(call)
        # The letter p is the hold for a bad password in PBS, which does not exist here; n is no
        # hold.
        letters = kinds.replace("p", "").replace("n", "")
        return (
            call.act(lambda ids: request(jobs=ids, kinds=letters), jobs) if letters else call.code
        )

    text = f"{verb} holds (``-h u|o|s``, by default user holds)"
    options = {
        "h": (
            "hold_list",
            "Kinds of hold: letters of u (user), o (operator), s (system); n: none.",
        ),
        "t": ("array", "Ignored; name the subjobs in the identifier, as in 5[1-3]."),
    }
    return Command(name, text, f"{name} [-h hold_list] job_identifier...", options, act, torque="t")


qhold = _hold_command("qhold", "place", Hold)
qrls = _hold_command("qrls", "remove", Release)


@command("qmove destination job_identifier...")
def qmove(call: Call) -> int:
    """Put waiting jobs into another queue."""
    destination, *jobs = operands_of(call, 2)
    if not destination or destination[0].isdigit():
        raise UsageFault(f"illegally formed destination: {destination}")
    if not call.is_here(destination):
        return call.code
    return call.act(lambda ids: Move(jobs=ids, destination=destination), jobs)


@command("qorder job1_identifier job2_identifier")
def qorder(call: Call) -> int:
    """Exchange the places of two waiting jobs in their queue."""
    operands = operands_of(call, 2)
    if len(operands) != 2:
        raise UsageFault("two jobs are needed")
    jobs = call.job_ids(operands)
    if len(jobs) == 2:
        try:
            call.ask(Order(first=jobs[0], second=jobs[1]), Outcomes)
        except Refusal as refusal:
            if refusal.pbs != UNKNOWN_JOB:
                raise
            server = refusal.job.partition(".")[2]
            both = " or ".join(job if "." in job else f"{job}.{server}" for job in jobs)
            call.complain(f"{MESSAGES[UNKNOWN_JOB]} {both}", code_of(refusal.pbs))
    return call.code


@command(
    "qrerun [-W force] job_identifier...",
    {"f": ("", "As -W force."), "m": TAKEN, "W": ("force", "Also jobs that are not rerunnable.")},
    torque="fm",
)
def qrerun(call: Call) -> int:
    """Stop running jobs and requeue them."""
    value = call.given.last("W")
    if value not in ("", "force"):
        raise UsageFault("illegal -W value")
    is_forced = value == "force" or call.given.has("f")
    return call.act(lambda ids: Rerun(jobs=ids, is_forced=is_forced), operands_of(call))


START_REFUSED = 2
"""Exit code if the server refuses a start, whatever its reason, as in OpenPBS (qrun.c)."""


@command(
    "qrun [-a] [-H host[+host...]] job_identifier ...",
    {
        "a": ("", "Ignored; the answer always comes with the start."),
        "H": ("host[+host...]", "Start the jobs on these hosts."),
    },
)
def qrun(call: Call) -> int:
    """Start waiting jobs now, whatever the policy would do, if their resources are free.

    Only operators may do this.  ``-H n1+n2`` names the hosts; without it the server chooses them.
    The server refuses a job that is held, waits for a time, is at a run limit or does not fit into
    the free resources, and names the reason.  It stops no running job for it.  The exit code is 2
    if the server refuses a start, as in OpenPBS.
    """
    hosts: tuple[str, ...] = ()
    if call.given.has("H"):  # n1+n2, or in brackets as in exec_vnode: (n1)+(n2)
        hosts = tuple(part.strip(" ()") for part in call.given.last("H").split("+"))
        if not all(hosts):
            raise UsageFault("illegal -H value")
        for name in hosts:
            if not re.fullmatch(r"[\w.-]+", name):
                why = f"{name[:80]!r} is no host; write n1+n2: the job says how much it needs"
                raise CommandFault(f"illegal -H value: {why}", 2)
    code = call.act(lambda ids: ForceStart(jobs=ids, hosts=hosts), operands_of(call))
    return code if code == NO_CONNECTION else min(code, START_REFUSED)


@command(
    "qmsg [-O] [-E] msg_string job_identifier...",
    {"E": ("", "Append to the error file (the default)."), "O": ("", "Append to the output file.")},
)
def qmsg(call: Call) -> int:
    """Append a line to the output (-O) or the error file (-E, the default) of running jobs."""
    text, *jobs = operands_of(call, 2)
    if not text:
        raise UsageFault("no message string")
    files = "".join(letter for letter in "EO" if call.given.has(letter)) or "E"
    return call.act(lambda ids: Message(jobs=ids, text=text, files=files), jobs)


@command(
    "qsig [-s signal] job_identifier...",
    {"a": TAKEN, "s": ("signal", "TERM (the default), SIGTERM, 15, suspend or resume.")},
    torque="a",
)
def qsig(call: Call) -> int:
    """Send a signal to running jobs: a name, a number, suspend or resume."""
    signal = call.given.last("s", "SIGTERM").strip()
    if not signal:
        raise UsageFault("illegal -s value")
    return call.act(lambda ids: Signal(jobs=ids, signal=signal), operands_of(call))
