"""Accounts, users, QOS and their limits as ``sacctmgr`` prints them: a dump (``sacctmgr dump``), or
tables with a header (``sacctmgr -P show assoc``, ``show qos``); docs/spec/production.md, section 7.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from qbatch.model.errors import InputError
from qbatch.model.site import OF_PARENT, ROOT, Account, Limits, Qos, UserShare
from qbatch.workloads.site.notes import SiteNotes
from qbatch.workloads.site.slurm_names import seconds, tres, whole

_JOBS, _TRES, _WALL = range(3)
_OF_ALL = {
    "grpjobs": ("total_jobs", _JOBS),
    "grpsubmit": ("total_submitted", _JOBS),
    "grpsubmitjobs": ("total_submitted", _JOBS),
    "grpjobsaccrue": ("total_accruing", _JOBS),
    "grpwall": ("total_wall", _WALL),
    "grptres": ("total", _TRES),
    "grptresmins": ("total_minutes", _TRES),
    "grptresrunmins": ("run_minutes", _TRES),
    "maxwall": ("max_wall", _WALL),
    "maxwalldurationperjob": ("max_wall", _WALL),
    "maxtres": ("max_per_job", _TRES),
    "maxtresperjob": ("max_per_job", _TRES),
    "maxtrespernode": ("max_per_host", _TRES),
    "maxtresmins": ("max_minutes_per_job", _TRES),
    "maxtresminsperjob": ("max_minutes_per_job", _TRES),
    "minpriothres": ("min_priority", _JOBS),
    "minpriothreshold": ("min_priority", _JOBS),
}
_OF_ASSOCIATIONS = _OF_ALL | {
    "maxjobs": ("max_jobs_per_user", _JOBS),
    "maxsubmit": ("max_submitted_per_user", _JOBS),
    "maxsubmitjobs": ("max_submitted_per_user", _JOBS),
    "maxjobsaccrue": ("max_accruing_per_user", _JOBS),
}
_PER = {"pu": "user", "peruser": "user", "pa": "account", "peraccount": "account"}
_OF_QOS = (
    _OF_ALL
    | {
        f"{name}{ending}": (f"{field}_per_{of}", kind)
        for name, field, kind in (
            ("maxjobs", "max_jobs", _JOBS),
            ("maxsubmit", "max_submitted", _JOBS),
            ("maxsubmitjobs", "max_submitted", _JOBS),
            ("maxjobsaccrue", "max_accruing", _JOBS),
            ("maxtres", "max", _TRES),
            ("maxtresrunmins", "run_minutes", _TRES),
        )
        for ending, of in _PER.items()
    }
    | {"mintres": ("min_per_job", _TRES), "mintresperjob": ("min_per_job", _TRES)}
)
_QOS_FLAGS = {
    "denyonlimit": "deny-on-limit",
    "nodecay": "no-decay",
    "noreserve": "no-reserve",
    "overpartqos": "over-partition-qos",
    "usagefactorsafe": "usage-factor-safe",
}
_WITHOUT_EFFECT = frozenset(
    (
        "adminlevel",
        "cluster",
        "comment",
        "coordinator",
        "description",
        "flags",
        "id",
        "lft",
        "organization",
        "parentid",
        "parentname",
        "rgt",
        "share",
        "wckeys",
    )
)
_SHARES = ("fairshare", "share")
_PARENT_SHARES = 2**31 - 1
_OPTION = re.compile(r"[A-Za-z ]+=")


class Association(msgspec.Struct):
    """What a line says of an account or, with ``user``, of a user in it."""

    place: str
    account: str
    parent: str
    user: str
    values: dict[str, str]


def read_dump(path: str) -> list[Association]:
    """Return the accounts and users of ``sacctmgr dump``, in order."""
    found: list[Association] = []
    parent = ""
    for number, line in enumerate(_text(path).splitlines(), 1):
        line, place = line.strip(), f"{path}: line {number}"
        if not line or line.startswith(("#", "sacctmgr:")):
            continue
        head = re.match(r"(Cluster|Parent|Account|User)\s+-\s+'([^']*)'(?::(.*))?\Z", line)
        if head is None:
            raise InputError(
                f"{place}: {line[:40]!r} is not a line of sacctmgr dump, such as Account - 'physics'"
            )
        kind, name, options = head[1], head[2], head[3] or ""
        if kind == "Parent":
            parent = name
        elif kind == "Cluster":
            found.append(Association(place, ROOT, "", "", _options(options)))
        elif kind == "Account":
            found.append(Association(place, name, parent, "", _options(options)))
        else:
            found.append(Association(place, parent, "", name, _options(options)))
    if not found:
        raise InputError(f"{path}: it has no Cluster line; name a file of sacctmgr dump")
    return found


def _options(text: str) -> dict[str, str]:
    """Return ``Name=value:Name='value'`` by name in small letters; a value may hold colons
    (``gres/gpu:a100=4``)."""
    parts: list[str] = []
    for part in re.split(r":(?=(?:[^']*'[^']*')*[^']*\Z)", text):
        is_option = _OPTION.match(part) is not None
        if is_option or not parts:
            parts.append(part)
        else:
            parts[-1] += f":{part}"
    found: dict[str, str] = {}
    for part in filter(None, parts):
        name, _, value = part.partition("=")
        name = name.replace(" ", "").lower()
        # What looks like an option may be the type of a resource: GrpTRES=gres/gpu:a100=4.
        if name not in _OF_ASSOCIATIONS and name not in _ANY_OPTION and found:
            last = next(reversed(found))
            if last in _OF_ASSOCIATIONS and _OF_ASSOCIATIONS[last][1] == _TRES:
                found[last] += f":{part}"
                continue
        found[name] = value.strip("'")
    return found


_ANY_OPTION = _WITHOUT_EFFECT | {"qos", "defaultqos", "defaultaccount", "priority", *_SHARES}


def read_table(path: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the place and the cells, by name in small letters, of each line of a table of
    ``sacctmgr --parsable2``."""
    lines = csv.reader(_text(path).splitlines(), delimiter="|", quoting=csv.QUOTE_NONE)
    header = [name.replace(" ", "").lower() for name in next(lines, [])]
    for cells in filter(None, lines):
        place = f"{path}: line {lines.line_num}"
        if len(cells) == len(header) + 1 and not cells[-1]:  # --parsable ends lines with a bar
            cells = cells[:-1]
        if len(cells) != len(header):
            raise InputError(f"{place}: {len(cells)} values, the header names {len(header)}")
        yield place, dict(zip(header, (cell.strip() for cell in cells), strict=True))


def read_associations(path: str) -> list[Association]:
    """Return the accounts and users of ``sacctmgr -P show assoc``; it needs the column ParentName."""
    found: list[Association] = []
    for place, cells in read_table(path):
        for name in ("account", "user", "parentname"):
            if name not in cells:
                raise InputError(
                    f"{path}: it has no column {name}; write it with format=Cluster,Account,User,"
                    "ParentName,Share,QOS,DefaultQOS,..., or use sacctmgr dump"
                )
        if cells.get("partition"):
            raise InputError(
                f"{place}: user {cells['user']} has limits of its own in partition "
                f"{cells['partition']}; that is not emulated: leave the line out"
            )
        values = {
            name: value
            for name, value in cells.items()
            if value and name not in ("account", "user", "parentname", "partition")
        }
        values["defaultqos"] = values.pop("defqos", values.get("defaultqos", ""))
        found.append(
            Association(place, cells["account"], cells["parentname"], cells["user"], values)
        )
    return found


def read_accounts(
    lines: list[Association], known_qos: set[str], notes: SiteNotes
) -> tuple[tuple[Account, ...], list[Limits]]:
    """Return the accounts with their users, and their sets of limits.  Accounts come in the order
    of the file, each after the one above it."""
    accounts: dict[str, Account] = {}
    users: dict[str, list[UserShare]] = {}
    limits: list[Limits] = []
    for line in lines:
        values = line.values
        if line.user:
            name, mark = f"user {line.user} of {line.account}", f"user-{line.user}-{line.account}"
        else:
            name, mark = f"account {line.account}", f"account-{line.account}"
        own = _limits(mark, values, _OF_ASSOCIATIONS, line.place)
        if own is not None:
            limits.append(own)
        for option in values.keys() - _OF_ASSOCIATIONS.keys() - _ANY_OPTION:
            notes.ignore(line.place, f"{option} of {name}", "is not known")
        said: dict[str, Any] = {
            "shares": _shares(values, line.place),
            "limits": "" if own is None else own.name,
            "qos": _names(values.get("qos", ""), known_qos, line.place, notes),
            "default_qos": values.get("defaultqos", ""),
            "priority": max(whole(values.get("priority", "") or "0", line.place, "Priority"), 0),
        }
        if said["default_qos"] not in known_qos:
            said["default_qos"] = ""
        if line.user:
            if line.account not in users:
                raise InputError(
                    f"{line.place}: there is no account {line.account!r} before the user {line.user!r}"
                )
            is_default = values.get("defaultaccount", "") == line.account
            users[line.account].append(UserShare(line.user, is_default=is_default, **said))
        else:
            if line.account in accounts:
                raise InputError(f"{line.place}: the account {line.account!r} appears twice")
            if line.parent and line.parent not in accounts:
                raise InputError(
                    f"{line.place}: there is no account {line.parent!r} above {line.account!r}"
                )
            accounts[line.account] = Account(line.account, line.parent or ROOT, **said)
            users[line.account] = []
        notes.use(line.place, name, "[[share]]")
    whole_tree = tuple(
        msgspec.structs.replace(each, users=tuple(users[name])) for name, each in accounts.items()
    )
    return whole_tree, limits


def read_qos(path: str, notes: SiteNotes) -> tuple[tuple[Qos, ...], list[Limits]]:
    """Return the QOS of ``sacctmgr -P show qos``, and their sets of limits."""
    found: list[Qos] = []
    limits: list[Limits] = []
    for place, cells in read_table(path):
        if "name" not in cells:
            raise InputError(f"{path}: it has no column Name; write it with sacctmgr -P show qos")
        name = cells["name"]
        own = _limits(f"qos-{name}", cells, _OF_QOS, place)
        if own is not None:
            limits.append(own)
        mode = cells.get("preemptmode", "").lower()
        flags: list[str] = []
        for flag in filter(None, cells.get("flags", "").split(",")):
            if flag.lower() in _QOS_FLAGS:
                flags.append(_QOS_FLAGS[flag.lower()])
            else:
                notes.ignore(place, f"Flags={flag} of QOS {name}", "is not emulated")
        found.append(
            Qos(
                name,
                max(whole(cells.get("priority", "") or "0", place, "Priority"), 0),
                "" if own is None else own.name,
                tuple(filter(None, cells.get("preempt", "").split(","))),
                "" if mode in ("", "cluster") else mode,
                max(seconds(cells.get("gracetime", "") or "0", place, "GraceTime"), 0),
                seconds(cells.get("preemptexempttime", "") or "-1", place, "PreemptExemptTime"),
                float(cells.get("usagefactor", "") or 1.0),
                tuple(flags),
            )
        )
        notes.use(place, f"QOS {name}", "[[qos]]")
    return tuple(found), limits


def _limits(
    name: str, values: dict[str, str], fields: dict[str, tuple[str, int]], place: str
) -> Limits | None:
    """Return the limits that some values set, None if they set none."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if key not in fields or not value:
            continue
        field, kind = fields[key]
        if kind == _TRES:
            amounts = tres(value, place)
            if amounts:
                found[field] = amounts
            continue
        number = seconds(value, place, key) if kind == _WALL else whole(value, place, key)
        if number >= 0:
            found[field] = number // 60 if kind == _WALL else number
    return Limits(name, **found) if found else None


def _shares(values: dict[str, str], place: str) -> int:
    text = next((values[name] for name in _SHARES if values.get(name)), "1")
    if text.lower() == "parent":
        return OF_PARENT
    shares = whole(text, place, "Fairshare")
    return OF_PARENT if shares == _PARENT_SHARES else max(shares, 0)


def _names(text: str, known: set[str], place: str, notes: SiteNotes) -> tuple[str, ...]:
    """Return the QOS of a list that are known."""
    listed = [name.strip() for name in text.split(",") if name.strip()]
    for name in listed:
        if name not in known:
            notes.ignore(place, f"QOS {name}", "no file defines it; give sacctmgr -P show qos too")
    return tuple(name for name in listed if name in known)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
