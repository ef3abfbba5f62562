"""The tables of a machine file about what a site decides (:mod:`qbatch.model.site`): ``[[qos]]``,
``[[share]]``, ``[limits]``, ``[priority]``, ``[fairshare]``, ``[scheduler]`` and ``[preempt]``; read
and written."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec

from qbatch.model.machine import memory_text, parse_memory
from qbatch.model.site import (
    FAIR_SHARES,
    NO_LIMIT,
    OF_PARENT,
    PREEMPT_MODES,
    PRIORITIES,
    PRIORITY_FLAGS,
    QOS_FLAGS,
    ROOT,
    Account,
    Amounts,
    FairShare,
    Limits,
    Passes,
    Preemption,
    Priority,
    Qos,
    Site,
    UserShare,
)
from qbatch.model.table_reader import TableReader
from qbatch.model.toml_text import TomlText

ARRAYS, SINGLE = ("qos", "share"), ("limits", "priority", "fairshare", "scheduler", "preempt")
"""The names of the tables: of those that may come several times, and of the others."""

SLURM = "slurm"
"""The kind of scheduler that makes Slurm's passes (:class:`qbatch.model.site.Passes`)."""

_WHOLE, _AMOUNTS, _SPAN, _TRUTH = range(4)
_MOST = 2**60
_MEMORY, _MINUTES = "memory", "minutes"
_COUNTED = ("cpus", _MEMORY, "hosts", "billing")
_LIMITS = {
    field.name: _AMOUNTS if field.default == () else _WHOLE
    for field in msgspec.structs.fields(Limits)
    if field.name != "name"
}
_WEIGHTS = ("age", "association", "fairshare", "size", "partition", "qos")
_ENFORCED = {
    "associations": "enforces_accounts",
    "limits": "enforces_limits",
    "qos": "enforces_qos",
    "safe": "is_safe",
}
_RESETS = ("now", "daily", "weekly", "monthly", "quarterly", "yearly")
_PREEMPTION = ("none", "partition", "qos")


class _Key(NamedTuple):
    """A key of ``backfill`` or ``main`` of ``[scheduler]``: its table, its name, the field of
    ``Passes``, and its kind."""

    table: str
    name: str
    field: str
    kind: int


_PASSES = (
    _Key("main", "interval", "interval", _SPAN),
    _Key("main", "delay", "delay", _WHOLE),
    _Key("main", "least_gap", "least_gap", _WHOLE),
    _Key("main", "max_test", "depth", _WHOLE),
    _Key("main", "max_test_per_partition", "partition_depth", _WHOLE),
    _Key("main", "defer", "is_deferring", _TRUTH),
    _Key("main", "limit_stop", "assoc_limit_stop", _TRUTH),
    _Key("backfill", "interval", "backfill_interval", _SPAN),
    _Key("backfill", "resolution", "backfill_resolution", _SPAN),
    _Key("backfill", "window", "backfill_window", _SPAN),
    _Key("backfill", "max_test", "backfill_depth", _WHOLE),
    _Key("backfill", "max_per_user", "backfill_per_user", _WHOLE),
    _Key("backfill", "max_per_partition", "backfill_per_partition", _WHOLE),
    _Key("backfill", "max_per_user_and_partition", "backfill_per_user_and_partition", _WHOLE),
    _Key("backfill", "max_per_association", "backfill_per_association", _WHOLE),
    _Key("backfill", "max_starts", "backfill_starts", _WHOLE),
    _Key("backfill", "max_array_tasks", "backfill_array_tasks", _WHOLE),
    _Key("backfill", "min_age", "backfill_min_age", _WHOLE),
    _Key("backfill", "min_priority", "backfill_min_priority", _WHOLE),
    _Key("backfill", "once_per_job", "backfill_once_per_job", _TRUTH),
    _Key("backfill", "licences", "backfill_licences", _TRUTH),
)


def read_site(text: TomlText, document: dict[str, Any], resources: Sequence[str]) -> Site | None:
    """Return what a site decides, None if no table says it.

    ``resources``: the names of what hosts and the server have beyond processors and memory.

    Raises:
        InputError: names the key, its line, the reason and the way out.
    """
    reader = _SiteReader(text)
    if not any(name in document for name in (*ARRAYS, *SINGLE)):
        return None
    tables = {name: reader.table(document, name) for name in SINGLE}
    limits = reader.limit_sets(tables["limits"], (*_COUNTED, *resources))
    known = {each.name for each in limits}
    qos = reader.qualities(text.tables("qos", document), known)
    scheduler, preempt = tables["scheduler"], tables["preempt"]
    reader.known_keys(preempt, ("kind", "mode", "exempt"), " in [preempt]")
    enforced = reader.names(scheduler, "enforce", set(_ENFORCED), "thing to enforce")
    return Site(
        reader.accounts(text.tables("share", document), known, {each.name for each in qos}),
        qos,
        limits,
        reader.priority(tables["priority"], resources),
        reader.fair_share(tables["fairshare"]),
        reader.passes(scheduler),
        Preemption(
            reader.one_of(preempt, "kind", _PREEMPTION),
            reader.one_of(preempt, "mode", PREEMPT_MODES),
            reader.seconds_of(preempt, "exempt", 0),
        ),
        **{field: name in enforced for name, field in _ENFORCED.items()},
    )


class _SiteReader(TableReader):
    """Reads the tables of a site."""

    def table(self, inside: dict[str, Any], key: str) -> dict[str, Any]:
        """Return a table, empty if it is absent."""
        found = inside.get(key, {})
        if not isinstance(found, dict):
            raise self.error(key, f"must be one table: [{key}]", None, inside)
        return found

    def one_of(self, table: dict[str, Any], key: str, known: Sequence[str]) -> str:
        """Return one of some words, the first if the key is absent."""
        value = self.text(table, key, known[0])
        self.check_known(table, key, [value], set(known), f"{key} of this name:")
        return value

    def seconds_of(self, table: dict[str, Any], key: str, default: int) -> int:
        """Return a time in seconds, a number from 0 or a text such as "7-00:00:00"."""
        if table.get(key) == 0:
            return 0
        return self.span(table, key) // 1_000_000 if key in table else default

    def name_of(self, table: dict[str, Any], noun: str, known: Collection[str]) -> str:
        """Return the name of a table that must have one of its own."""
        name = table.get("name")
        if not isinstance(name, str) or not re.fullmatch(r"[^\s,]+", name):
            text = 'needs a name without blanks and commas, such as name = "gpu"'
            raise self.error(noun, text, None, table)
        if name in known:
            raise self.error("name", f"the {noun} {name!r} appears twice", name, table)
        return name

    def limits_of(self, table: dict[str, Any], known: set[str]) -> str:
        """Return the name of a set of limits, empty for none."""
        name = self.text(table, "limits", "")
        if name:
            self.check_known(table, "limits", [name], known, "set of limits in [limits]:")
        return name

    def amounts(self, table: dict[str, Any], key: str, known: Sequence[str]) -> Amounts:
        """Return amounts by resource; memory may be a text such as "64GB"."""
        values = table[key]
        if not isinstance(values, dict):
            text = "must be a table of an amount for each resource, such as { cpus = 64 }"
            raise self.error(key, text, None, table)
        self.check_known(table, key, list(values), set(known), "resource")
        values = dict(values)
        if isinstance(values.get(_MEMORY), str):
            try:
                values[_MEMORY] = parse_memory(values[_MEMORY])
            except ValueError as error:
                raise self.error(key, f"{_MEMORY}: {error}", None, table) from error
        self.check_amounts(table, key, values, _MOST)
        return tuple(values.items())

    def limit_sets(self, table: dict[str, Any], known: Sequence[str]) -> tuple[Limits, ...]:
        """Return the sets of limits of ``[limits]``."""
        found = []
        for name in table:
            limits, values = self.table(table, name), dict[str, Any]()
            self.known_keys(limits, tuple(_LIMITS), f" in the limits {name!r}")
            for key in limits:
                if _LIMITS[key] == _AMOUNTS:
                    values[key] = self.amounts(limits, key, known)
                else:
                    values[key] = self.whole(limits, key, 0)
            found.append(Limits(name, **values))
        return tuple(found)

    def qualities(self, tables: list[dict[str, Any]], limits: set[str]) -> tuple[Qos, ...]:
        """Return the QOS; one may preempt those that come later in the file, too."""
        found: dict[str, Qos] = {}
        names = {str(each.get("name")) for each in tables}
        for table in tables:
            self.known_keys(table, Qos.__struct_fields__, " in [[qos]]")
            name = self.name_of(table, "qos", found)
            factor = table.get("usage_factor", 1.0)
            if (
                isinstance(factor, bool)
                or not isinstance(factor, int | float)
                or not 0 <= factor < 1e9
            ):
                text = f"{factor!r} is not a number from 0 to 1000000000"
                raise self.error("usage_factor", text, None, table)
            mode = self.text(table, "preempt_mode", "")
            if mode:
                self.check_known(table, "preempt_mode", [mode], set(PREEMPT_MODES), "preempt mode")
            found[name] = Qos(
                name,
                self.whole(table, "priority", 0) or 0,
                self.limits_of(table, limits),
                self.names(table, "preempts", names, "QOS"),
                mode,
                self.seconds_of(table, "grace", 0),
                self.seconds_of(table, "exempt", NO_LIMIT),
                float(factor),
                self.names(table, "flags", set(QOS_FLAGS), "flag"),
            )
        return tuple(found.values())

    def accounts(
        self, tables: list[dict[str, Any]], limits: set[str], qos: set[str]
    ) -> tuple[Account, ...]:
        """Return the accounts, each after the one above it."""
        found: dict[str, Account] = {}
        for table in tables:
            self.known_keys(table, Account.__struct_fields__, " in [[share]]")
            name = self.name_of(table, "share", found)
            parent = self.text(table, "parent", ROOT)
            if parent != ROOT and parent not in found:
                text = f"there is no [[share]] {parent!r} before {name!r}; define the parent first"
                raise self.error("parent", text, parent, table)
            users = self.table(table, "users")
            found[name] = Account(
                name,
                parent,
                users=tuple(
                    self._user(table, user, value, limits, qos) for user, value in users.items()
                ),
                **self._of_share(table, limits, qos),
            )
        return tuple(found.values())

    def _of_share(self, table: dict[str, Any], limits: set[str], qos: set[str]) -> dict[str, Any]:
        """Return what accounts and users have in common."""
        shares = table.get("shares", 1)
        if shares == "parent":
            shares = OF_PARENT
        elif isinstance(shares, bool) or not isinstance(shares, int) or not 0 <= shares < 2**31:
            text = f'{shares!r} is neither a whole number from 0 to {2**31 - 1} nor "parent"'
            raise self.error("shares", text, None, table)
        default = self.text(table, "default_qos", "")
        if default:
            self.check_known(table, "default_qos", [default], qos, "QOS")
        return {
            "shares": shares,
            "limits": self.limits_of(table, limits),
            "qos": self.names(table, "qos", qos, "QOS"),
            "default_qos": default,
            "priority": self.whole(table, "priority", 0) or 0,
        }

    def _user(
        self, inside: dict[str, Any], user: str, value: Any, limits: set[str], qos: set[str]
    ) -> UserShare:
        table = value if isinstance(value, dict) else {"shares": value}
        known = (
            *(key for key in UserShare.__struct_fields__ if key not in ("user", "is_default")),
        )
        if not isinstance(value, dict | int | str) or isinstance(value, bool):
            text = f"{user} = {value!r} is neither shares nor a table, such as {{ shares = 2 }}"
            raise self.error("users", text, None, inside)
        self.known_keys(table, (*known, "default"), f" of the user {user!r}")
        return UserShare(
            user, is_default=self.boolean(table, "default"), **self._of_share(table, limits, qos)
        )

    def priority(self, table: dict[str, Any], resources: Sequence[str]) -> Priority:
        """Return the weights of ``[priority]``; without it jobs go by their submission."""
        if not table:
            return Priority()
        self.known_keys(table, ("kind", "weights", "max_age", "period", "flags"), " in [priority]")
        weights = self.table(table, "weights")
        self.known_keys(weights, (*_WEIGHTS, "resources"), " in weights of [priority]")
        of_resources, known = self.table(weights, "resources"), (*_COUNTED, *resources)
        self.check_known(weights, "resources", list(of_resources), set(known), "resource")
        for name, weight in of_resources.items():
            is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
            if not is_number or not 0 <= weight < 2**32:
                text = f"{name} = {weight!r} is not a number from 0 to {2**32 - 1}"
                raise self.error("resources", text, None, weights)
        return Priority(
            self.one_of(table, "kind", PRIORITIES),
            **{name: self.whole(weights, name, 0) or 0 for name in _WEIGHTS},
            resources=tuple((name, float(weight)) for name, weight in of_resources.items()),
            max_age=self.seconds_of(table, "max_age", Priority().max_age),
            period=self.seconds_of(table, "period", Priority().period) or Priority().period,
            flags=self.names(table, "flags", set(PRIORITY_FLAGS), "flag"),
        )

    def fair_share(self, table: dict[str, Any]) -> FairShare:
        """Return how use becomes a factor, of ``[fairshare]``."""
        self.known_keys(table, FairShare.__struct_fields__, " in [fairshare]")
        reset = self.text(table, "reset", "")
        if reset:
            self.check_known(table, "reset", [reset], set(_RESETS), "time to reset:")
        return FairShare(
            self.one_of(table, "kind", FAIR_SHARES),
            self.seconds_of(table, "half_life", FairShare().half_life),
            reset,
            self.whole(table, "dampening", 1) or 1,
        )

    def passes(self, table: dict[str, Any]) -> Passes | None:
        """Return the passes of ``[scheduler]``, None if it does not say that they are Slurm's."""
        known = ("kind", "enforce", "main", "backfill")
        self.known_keys(table, known, " in [scheduler]")
        if "kind" not in table:
            if "main" in table or "backfill" in table:
                text = f'main and backfill need kind = "{SLURM}"'
                raise self.error("scheduler", text, None, table)
            return None
        self.check_known(
            table, "kind", [self.text(table, "kind", "")], {SLURM}, "kind of scheduler"
        )
        values: dict[str, Any] = {}
        backfill = table.get("backfill", {})
        if backfill is False:
            values["has_backfill"], backfill = False, {}
        inner = {"main": self.table(table, "main"), "backfill": backfill}
        if not isinstance(backfill, dict):
            raise self.error("backfill", "must be a table, or false", None, table)
        for name, each in inner.items():
            keys = tuple(key.name for key in _PASSES if key.table == name)
            self.known_keys(each, keys, f" in {name} of [scheduler]")
        for key in _PASSES:
            each = inner[key.table]
            if key.name not in each:
                continue
            if key.kind == _TRUTH:
                values[key.field] = self.boolean(each, key.name)
            elif key.kind == _SPAN:
                values[key.field] = self.span(each, key.name) // 1_000_000
            else:
                values[key.field] = self.whole(each, key.name, 0)
        return Passes(**values)


def site_as_tables(site: Site) -> list[tuple[str, dict[str, Any]]]:
    """Return the tables with the values that are not the defaults: the header of each, in
    brackets, and its values."""
    tables: list[tuple[str, dict[str, Any]]] = []
    for each in site.qos:
        tables.append(("[[qos]]", _changed(each)))
    for account in site.accounts:
        users = {user.user: _user_as_value(user) for user in account.users}
        values = _changed(account)
        values.pop("users", None)
        tables.append(("[[share]]", _with_parent(values) | ({"users": users} if users else {})))
    if site.limits:
        tables.append(
            (
                "[limits]",
                {each.name: _without(_limits_as_value(each), "name") for each in site.limits},
            )
        )
    priority = _changed(site.priority)
    weights = {name: priority.pop(name) for name in (*_WEIGHTS, "resources") if name in priority}
    if "resources" in weights:
        weights["resources"] = dict(weights["resources"])
    if priority or weights:
        tables.append(("[priority]", priority | ({"weights": weights} if weights else {})))
    for name, table in (("[fairshare]", site.fairshare), ("[preempt]", site.preemption)):
        if values := _changed(table):
            tables.append((name, values))
    scheduler: dict[str, Any] = {}
    enforced = [name for name, field in _ENFORCED.items() if getattr(site, field)]
    if site.passes is not None:
        scheduler, usual = {"kind": SLURM}, Passes()
        for key in _PASSES:
            value = getattr(site.passes, key.field)
            if value != getattr(usual, key.field):
                scheduler.setdefault(key.table, {})[key.name] = value
        if not site.passes.has_backfill:
            scheduler["backfill"] = False
    if enforced:
        scheduler["enforce"] = enforced
    if scheduler:
        tables.append(("[scheduler]", scheduler))
    return tables


def _changed(values: msgspec.Struct) -> dict[str, Any]:
    """Return the values of a structure that are not the defaults; tuples become lists."""
    usual = {field.name: field.default for field in msgspec.structs.fields(values)}
    found: dict[str, Any] = msgspec.to_builtins(values)
    return {name: value for name, value in found.items() if value != usual[name]}


def _without(values: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}


def _with_parent(values: dict[str, Any]) -> dict[str, Any]:
    if values.get("shares") == OF_PARENT:
        values["shares"] = "parent"
    return values


def _user_as_value(user: UserShare) -> Any:
    """Return a user as its shares, or as a table if more is said of it."""
    values = _with_parent(_without(_changed(user), "user"))
    if values.pop("is_default", False):
        values["default"] = True
    if set(values) <= {"shares"}:
        return values.get("shares", 1)
    return values


def _limits_as_value(limits: Limits) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in _changed(limits).items():
        if name != "name" and _LIMITS[name] == _AMOUNTS:
            is_span = _MINUTES in name
            values[name] = {
                resource: memory_text(amount) if resource == _MEMORY and not is_span else amount
                for resource, amount in value
            }
        elif value != NO_LIMIT:
            values[name] = value
    return values
