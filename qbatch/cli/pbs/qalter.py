"""``qalter``: change what jobs ask for."""

from __future__ import annotations

import re
from typing import Any

from qbatch.cli.pbs.command import Call, Command, CommandFault, UsageFault, operands_of
from qbatch.cli.pbs.qsub import working_directory
from qbatch.cli.pbs.submission import ATTRIBUTE_OPTIONS, Gathered, field_value, illegal
from qbatch.wire.attributes import BY_NAME
from qbatch.wire.requests import Alter, Changes

USAGE = "\n\t".join(
    (
        "qalter [-a date_time] [-A account_string] [-c interval] [-e path]",
        "[-h hold_list] [-j y|n] [-k keep] [-l resource_list]",
        "[-m mail_options] [-M user_list] [-N jobname] [-o path] [-p priority]",
        "[-R o|e|oe] [-r y|n] [-S path] [-u user_list] [-W dependency_list]",
        "[-P project_name] job_identifier...",
    )
)
"""The usage text of OpenPBS."""


def read_changes(call: Call) -> Changes:
    """Return the changes that the options ask for.

    Raises:
        CommandFault: a value is illegal.
    """
    gathered = Gathered(
        working_directory(call.here), call.here.environment, is_torque=call.here.is_torque
    )
    changed: dict[str, Any] = {}
    rest: list[tuple[str, str]] = []
    for letter, value in call.given.options:
        if letter == "h":
            if not value or set(value) - set("uospn") or ("n" in value and len(value) > 1):
                raise illegal("h")
            changed["hold"] = value.replace("p", "")
        elif letter == "t":
            found = re.fullmatch(r"[-0-9,:]*%([0-9]{1,7})", value)
            if found is None:
                raise illegal("t", "only the number of subjobs at a time can be changed: -t %5")
            changed["slot_limit"] = int(found[1])
        else:
            rest.append((letter, value))
    gathered.take(rest)
    if gathered.resources:
        gathered.check_resources()
        changed["resources"] = gathered.resources
    if gathered.variables:
        changed["variables"] = gathered.variables
    changed.update(gathered.fields)
    for name, value in gathered.attributes.items():
        field = BY_NAME[name].field
        if field not in Changes.__struct_fields__:
            raise UsageFault(f"illegal -W value: {name} cannot be changed")
        changed[field] = int(value) if field == "slot_limit" else field_value(name, value)
    fixed = [*gathered.extra, *(name for name in changed if name not in Changes.__struct_fields__)]
    if fixed:
        raise CommandFault(f"{fixed[0]} cannot be changed: it belongs to the submission", 2)
    return Changes(
        **{name: value for name, value in changed.items() if name in Changes.__struct_fields__}
    )


def _act(call: Call) -> int:
    jobs = operands_of(call)
    changes = read_changes(call)
    return call.act(lambda ids: Alter(jobs=ids, changes=changes), jobs)


OPTIONS = {
    **ATTRIBUTE_OPTIONS,
    "h": ("hold_list", "The holds: letters of u, o, s, or n."),
    "t": ("%max", "The number of an array's jobs that may run at once."),
}

qalter = Command("qalter", __doc__, USAGE, OPTIONS, _act, torque="ntv")
