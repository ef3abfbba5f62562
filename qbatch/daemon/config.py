"""The configuration file (TOML): every key with its meaning, read into :class:`qbatch.daemon.settings.Settings`.

``KEYS`` is the one list of keys: reading, ``qbatch config show --origin``, ``qbatch config keys`` and the README go by it.
Unknown keys are refused with the nearest one; a file is taken as a whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import structs

from qbatch.daemon.core.emulation import parse_runtime
from qbatch.daemon.executors.supervision.usage import CODES
from qbatch.daemon.own_policies import load_tried
from qbatch.daemon.pool_executor import OF_DASK, check_executor, check_executors, parse_address
from qbatch.daemon.settings import ENFORCED, MOST_SHADOWS, Pool, Queue, Settings, pool_on
from qbatch.model.errors import InputError, QbatchError, UsageError, suggestion
from qbatch.model.machine import Host, Machine, expand_names, parse_memory
from qbatch.model.machine_file import machine_as_toml, machine_of_tables
from qbatch.model.toml_text import TomlText
from qbatch.planning.policy import Policy
from qbatch.policies.registry import load_policy, own_class
from qbatch.wire.resource_rules import LENIENCIES
from qbatch.wire.resources import format_duration, parse_duration
from qbatch.workloads.machines import SHIPPED, load_machine

TOP, POOL, QUEUE = "", "pool", "queue"


class Key(NamedTuple):
    """One key: the table that it stands in, its kind, its default as written, and what it means."""

    table: str
    name: str
    kind: str
    default: str
    meaning: str


KEYS = (
    Key(TOP, "server", "name", '"qbatch"', "the server's name, the part of a job identifier after the dot (no dots in it)"),
    Key(TOP, "executor", "executor", '"process"', "process: scripts run for real; emulated: jobs are timers on emulated hosts"),
    Key(TOP, "policy", "policy", '"easy"', "the policy of pools that name none (see: qbatch policies)"),
    Key(TOP, "default_queue", "text", '"batch"', "the queue of a job that names none; the only queue needs no naming"),
    Key(TOP, "operators", "texts", "[]", "users who may act on all jobs, queues and hosts"),
    Key(TOP, "managers", "texts", "[]", "users who may also stop, reload and back up; root and the daemon's own user always may"),
    Key(TOP, "kill_delay", "time", '"10"', "seconds from TERM to KILL"),
    Key(TOP, "history", "bool", "true", "whether qstat -x shows finished jobs"),
    Key(TOP, "history_kept", "time", '""', 'how long qstat -x shows a finished job ("": for ever, as qbatch history does)'),
    Key(TOP, "max_jobs", "count", "10000000", "live jobs that the server takes"),
    Key(TOP, "max_jobs_per_user", "count", "none", "live jobs of one user"),
    Key(TOP, "max_array", "count", "1000000", "jobs in one array"),
    Key(TOP, "mail_command", "texts", "[]", "a program; gets the users as further arguments and the mail on stdin"),
    Key(TOP, "dialect", "dialect", '"openpbs"', "openpbs or torque: the PBS dialect inside jobs (elsewhere: QBATCH_DIALECT)"),
    Key(TOP, "seed", "count", "1", "seed of the draws of emulated run times"),
    Key(TOP, "shadows", "policies", "[]", "up to four policies to follow in shadow, beside the real ones (see: qbatch shadow)"),
    Key(TOP, "policies", "own policies", "[]",
        'policies of your own ("module:Class") that the running server may be set to, besides those of qbatch policies'),
    Key(TOP, "custom_resources", "texts", "[]", "resources that jobs may name beside those of PBS; shown, never counted"),
    Key(TOP, "lenient", "leniencies", "[]", f"what is not refused although OpenPBS does: {', '.join(LENIENCIES)}"),
    Key(TOP, "forecast_run_times", "run times", '"estimates"',
        "by what forecasts end jobs: estimates (walltimes), or predictions by the last two jobs of each user"),
    Key(TOP, "login_shell", "bool", "true", "whether a job's shell is a login shell and reads the profile files, as in OpenPBS"),
    Key(POOL, "name", "name", '"main"', "the pool's name"),
    Key(POOL, "machine", "machine", "none", 'hosts and classes of a machine file ("origin2000", "hosts.toml"), or its tables'),
    Key(POOL, "hosts", "hosts", "required", 'names of hosts: "n[01-64]" or ["a", "b[1-4]"] (without machine)'),
    Key(POOL, "cpus", "count", "required", "processors of each host (without machine)"),
    Key(POOL, "memory", "memory", "0", 'memory of each host, "64GB"; 0: not counted'),
    Key(POOL, "policy", "policy", "as at the top", "the policy of this pool"),
    Key(POOL, "single_host", "bool", "false", "a job stays inside one host, all its chunks together"),
    Key(POOL, "spans", "bool", "false", "only processors in all count: a chunk may be taken apart, as in a workload log"),
    Key(POOL, "runtime", "runtime", '"walltime"', "run time if unsaid: walltime, fixed(60), uniform(1,9), exponential(30)"),
    Key(POOL, "enforce", "limits", '["cput", "pcput"]', f"what ends a job that uses more than it asked for: {', '.join(CODES)}"),
    Key(POOL, "executor", "pool_executor", "as at the top", "dask: each host is the Dask worker of its name, scripts run there"),
    Key(POOL, "address", "address", "none", 'the Dask scheduler, "tcp://head:8786" (with executor dask)'),
    Key(POOL, "directory", "text", '""', 'where Dask workers keep jobs that run ("": their ~/.local/state/qbatch/workers)'),
    Key(POOL, "timeout", "time", '"30"', "seconds that a Dask scheduler or worker may be silent until hosts are down"),
    Key(QUEUE, "name", "name", "required", "the queue's name"),
    Key(QUEUE, "pool", "text", "the first pool", "the pool in which its jobs run"),
    Key(QUEUE, "enabled", "bool", "true", "whether it takes jobs at the start"),
    Key(QUEUE, "started", "bool", "true", "whether its jobs may run at the start"),
    Key(QUEUE, "priority", "integer", "0", "shown by qstat -Qf; policies order by arrival unless they say otherwise"),
    Key(QUEUE, "destinations", "texts", "[]", "makes it a routing queue: the first of these that takes the job gets it"),
    Key(QUEUE, "users", "texts", "[]", "only these users may submit ([]: all)"),
    Key(QUEUE, "groups", "texts", "[]", "only users of these groups may submit ([]: all)"),
    Key(QUEUE, "max_queued", "count", "none", "jobs in the queue, running ones included"),
    Key(QUEUE, "max_queued_per_user", "count", "none", "jobs of one user in the queue"),
    Key(QUEUE, "max_running", "count", "none", "jobs that the policy may have running or next at once"),
    Key(QUEUE, "max_running_per_user", "count", "none", "the same for each user"),
    Key(QUEUE, "max_procs", "count", "none", "processors of one job"),
    Key(QUEUE, "min_procs", "count", "none", "processors that a job must ask for"),
    Key(QUEUE, "max_memory", "memory", "none", "memory of one job"),
    Key(QUEUE, "max_walltime", "time", "none", "walltime of one job"),
    Key(QUEUE, "min_walltime", "time", "none", "walltime that a job must ask for"),
    Key(QUEUE, "default_walltime", "time", '"1:00:00"', "walltime of a job that gives none; max_walltime, if that is shorter"),
    Key(QUEUE, "default_memory", "memory", "0", "memory of each chunk of a job that gives none"),
)  # fmt: skip
"""Every key of the configuration file."""

_RENAMED = {"server": "name", "history": "is_history_shown"}


def default_settings() -> Settings:
    """Return the configuration of a daemon that was given none: four hosts of 16 processors, three queues."""
    return parse_config(DEFAULT, "the built-in configuration")


DEFAULT = """\
default_queue = "batch"

[[pool]]
name = "main"
hosts = "n[1-4]"
cpus = 16

[[queue]]
name = "batch"
default_walltime = "1:00:00"

[[queue]]
name = "short"
default_walltime = "10:00"
max_walltime = "30:00"

[[queue]]
name = "long"
default_walltime = "24:00:00"
"""


def read_config(path: Path) -> Settings:
    """Read a configuration file; machine files that it names are looked for from where it stands.

    Raises:
        InputError: it cannot be read or used; with the key, its line, the reason and the way out.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path}: {reason}") from error
    return parse_config(text, str(path), path.parent)


def parse_config(text: str, source: str, folder: Path = Path()) -> Settings:
    """Return the settings that a TOML text describes; ``folder``: where machine files are that it names.

    Raises:
        InputError: with the key, its line, the reason and the way out.
    """
    reader = TomlText(text, source)
    plain = {name: value for name, value in reader.document.items() if name not in (POOL, QUEUE)}
    top = _table(reader, plain, TOP)
    policy = top.pop("policy", "easy")
    pools = tuple(_pool(reader, table, policy, place, folder) for place, table in enumerate(reader.tables(POOL)))
    if not pools:
        pools = default_settings().pools if text is not DEFAULT else ()
    queues = tuple(_queue(reader, table) for table in reader.tables(QUEUE))
    if not queues:
        queues = default_settings().queues if text is not DEFAULT else ()
        top.setdefault("default_queue", "batch")
    elif len(queues) == 1:
        top.setdefault("default_queue", queues[0].name)
    settings = Settings(pools=pools, queues=queues, **{_RENAMED.get(name, name): value for name, value in top.items()})
    _check_whole(reader, settings)
    return settings


def _pool(reader: TomlText, table: dict[str, Any], policy: str, place: int, folder: Path) -> Pool:
    values = _table(reader, table, POOL)
    if "machine" in values:
        return _pool_on(reader, table, values, policy, place, folder)
    for name in ("hosts", "cpus"):
        if name not in values:
            text = f'needs {name}; for example hosts = "n[01-04]" and cpus = 16, or machine = "FILE"'
            raise reader.error(POOL, text, None, table)
    memory = values.pop("memory", 0)
    name = values.pop("name", _usual_name(place))
    cpus = values.pop("cpus")
    hosts = tuple(Host(each, cpus, memory, name) for each in values.pop("hosts"))
    if values.get("single_host") and values.get("spans"):
        raise reader.error("spans", "does not go together with single_host", None, table)
    check_executor(reader, table, values)
    return Pool(name=name, hosts=hosts, policy=values.pop("policy", policy), **values)


def _pool_on(
    reader: TomlText, table: dict[str, Any], values: dict[str, Any], policy: str, place: int, folder: Path
) -> Pool:
    """Return the pool whose hosts a machine file describes; ``values``: those of its table, read."""
    for name in ("hosts", "cpus", "memory", "single_host", "spans"):
        if name in values:
            raise reader.error(
                name, "does not go together with machine, which says it itself; leave one out", None, table
            )
    said = values["machine"]
    try:
        machine = machine_of_tables(reader, said) if isinstance(said, dict) else load_machine(_beside(said, folder))
        check_hosts(machine)
    except InputError as error:
        raise error if isinstance(said, dict) else reader.error("machine", str(error), said, table) from error
    check_executor(reader, table, values)
    name, runtime = values.get("name", _usual_name(place)), values.get("runtime", "walltime")
    found = pool_on(machine, name, values.get("policy", policy), runtime)
    return structs.replace(found, **{key: values[key] for key in ("enforce", "executor", *OF_DASK) if key in values})


def _beside(name: str, folder: Path) -> str:
    """Return the path of a machine file that a configuration names: from where the configuration stands, if it is there."""
    path = folder / name
    return str(path) if path.is_file() or name not in SHIPPED else name


def _usual_name(place: int) -> str:
    return "main" if place == 0 else f"pool{place + 1}"


def check_hosts(machine: Machine) -> None:
    """Refuse a machine whose hosts have names that clients of PBS could not read.

    Raises:
        InputError: with the first such name.
    """
    try:
        _check_names([host.name for host in machine.hosts])
    except ValueError as error:
        raise InputError(str(error)) from error


def _queue(reader: TomlText, table: dict[str, Any]) -> Queue:
    values = _table(reader, table, QUEUE)
    if "name" not in values:
        raise reader.error(QUEUE, "needs a name", None, table)
    queue = Queue(**values)
    longest = queue.max_walltime
    if longest is None or queue.default_walltime <= longest:
        return queue
    if "default_walltime" not in values:
        return Queue(**values, default_walltime=longest)
    text = f"queue {queue.name}: it is longer than max_walltime, so a job that gives none would be refused"
    raise reader.error("default_walltime", text, None, table)


def _check_hosts_apart(reader: TomlText, settings: Settings) -> None:
    """Refuse a host that is in two pools, or in one twice."""
    tables = reader.tables("pool")
    pool_of: dict[str, str] = {}
    for place, pool in enumerate(settings.pools):
        table = tables[place] if place < len(tables) else {}
        for host in pool.hosts:
            before = pool_of.get(host.name)
            if before is not None:
                why = "is there twice" if before == pool.name else f"is a host of pool {before!r} already"
                key = "machine" if "machine" in table else "hosts"
                raise reader.error(key, f"{host.name!r} {why}", None, table or None)
            pool_of[host.name] = pool.name


def _check_whole(reader: TomlText, settings: Settings) -> None:
    _check_hosts_apart(reader, settings)
    check_executors(reader, settings.executor, settings.pools)
    for kind, names in (
        ("name", [pool.name for pool in settings.pools]),
        ("name", [queue.name for queue in settings.queues]),
    ):
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise reader.error(kind, f"{name!r} is there twice", name)
            seen.add(name)
    queues = {queue.name for queue in settings.queues}
    pools = {pool.name for pool in settings.pools}
    if settings.default_queue not in queues:
        raise reader.error(
            "default_queue",
            f"there is no queue {settings.default_queue!r}{suggestion(settings.default_queue, queues)}; say which queue "
            "takes the jobs that name none",
        )
    for queue in settings.queues:
        if queue.pool and queue.pool not in pools:
            raise reader.error(
                "pool",
                f"queue {queue.name}: there is no pool {queue.pool!r}{suggestion(queue.pool, pools)}",
                queue.pool,
            )
        for destination in queue.destinations:
            if destination not in queues or destination == queue.name:
                near = suggestion(destination, queues - {queue.name})
                text = f"queue {queue.name}: {destination!r} is no other queue{near}"
                raise reader.error("destinations", text, destination)
            if next(each for each in settings.queues if each.name == destination).destinations:
                raise reader.error(
                    "destinations", f"queue {queue.name}: {destination!r} is a routing queue itself", destination
                )


def _table(reader: TomlText, table: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the values of one table, checked."""
    known = {key.name: key for key in KEYS if key.table == where}
    place = table if where else reader.document
    values = {}
    for name, value in table.items():
        if name not in known:
            tables = " or a table [[pool]] or [[queue]]" if where == TOP else ""
            inside = f" in [[{where}]]" if where else ""
            near = suggestion(name, [*known, *((POOL, QUEUE) if where == TOP else ())])
            raise reader.error(name, f"is not known{inside}{near} (known: {', '.join(known)}{tables})", None, place)
        try:
            read = _KINDS[known[name].kind](value)
        except ValueError as error:
            raise reader.error(name, str(error), value, place) from error
        except QbatchError as error:
            raise reader.error(name, str(error), value, place) from error
        if read is not None:
            values[name] = read
    return values


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text; put it in quotes")
    return value


def _name(value: Any) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,14}", _text(value)):
        raise ValueError(f"{value!r} is no name: a letter, then up to 14 letters, digits, - or _")
    return str(value)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError('must be a list of texts, such as ["a", "b"]')
    return tuple(value)


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) < value < 2**31:
        raise ValueError(f"{value!r} is no whole number")
    return value


def _count(value: Any) -> int:
    if _integer(value) < 1:
        raise ValueError(f"{value!r} is not a whole number of at least 1")
    return int(value)


def _time(value: Any) -> int | None:
    if value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f'{value!r} is no time; write seconds, or "HH:MM:SS"')
    return parse_duration(str(value))


def _hosts(value: Any) -> list[str]:
    names = [value] if isinstance(value, str) else list(_texts(value))
    found = [each for name in names for each in expand_names(name)]
    _check_names(found)
    if not found:
        raise ValueError("there is no host in it")
    return found


def _check_names(hosts: list[str]) -> None:
    for each in hosts:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", each):
            raise ValueError(f"{each!r} is no name of a host: letters, digits, - and _ (no dots: clients cut there)")


def _machine(value: Any) -> Any:
    if not isinstance(value, str | dict):
        raise ValueError(f'{value!r} is neither the name of a machine file, such as "origin2000", nor its tables')
    return value


def shadow_policy(text: str) -> Policy:
    """Return the policy that a text names, to be followed in shadow.

    Raises:
        UsageError: if there is no such policy, or if it resizes jobs while they run: how long a real job will run is not
            known, so nobody knows what it would have left to do after a change.
    """
    policy = load_policy(text)
    if getattr(policy, "is_malleable", False):
        raise UsageError(
            f"policy {text!r} resizes running jobs and cannot be followed in shadow; let it decide (qbatch policy set), or "
            f"replay the history: qbatch replay --policy {text}"
        )
    return policy


def _policy(value: Any) -> str:
    load_tried(_text(value))
    return str(value)


def _own_policies(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    for each in names:
        if own_class(each) != each:
            raise ValueError(f'{each!r} is no class of a module, such as "mine:Smallest" (without parameters: all are taken)')
    return names


def _policies(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    if len(names) > MOST_SHADOWS:
        raise ValueError(f"{len(names)} policies; at most {MOST_SHADOWS} are followed in shadow")
    for each in names:
        load_tried(each)
        shadow_policy(each)
    return names


def _runtime(value: Any) -> str:
    parse_runtime(_text(value))
    return str(value)


def _one_of(*known: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in known:
            raise ValueError(f"{value!r} is not known (known: {', '.join(known)})")
        return str(value)

    return read


def _some_of(known: Collection[str]) -> Callable[[Any], tuple[str, ...]]:
    def read(value: Any) -> tuple[str, ...]:
        names = _texts(value)
        for each in names:
            if each not in known:
                raise ValueError(f"{each!r} is none of {', '.join(known)}")
        return names

    return read


_KINDS: dict[str, Callable[[Any], Any]] = {
    "name": _name, "text": _text, "texts": _texts, "bool": _bool, "integer": _integer, "count": _count, "time": _time,
    "memory": parse_memory, "hosts": _hosts, "machine": _machine, "policy": _policy, "policies": _policies, "runtime": _runtime,
    "leniencies": _some_of(LENIENCIES), "limits": _some_of(CODES), "own policies": _own_policies,
    "executor": _one_of("process", "emulated"), "pool_executor": _one_of("process", "dask"), "address": parse_address,
    "dialect": _one_of("openpbs", "torque"), "run times": _one_of("estimates", "predictions"),
}  # fmt: skip


def as_toml(settings: Settings) -> str:
    """Return a text that gives the same settings again."""
    lines = [f"{key.name} = {_written(key, getattr(settings, _RENAMED.get(key.name, key.name)))}"
             for key in KEYS if key.table == TOP and key.name != "policy"
             and getattr(settings, _RENAMED.get(key.name, key.name)) is not None]  # fmt: skip
    for pool in settings.pools:
        values: dict[str, Any] = {"name": pool.name, "policy": pool.policy, "runtime": pool.runtime}
        if pool.machine is None:
            values |= {
                "hosts": tuple(host.name for host in pool.hosts), "cpus": pool.hosts[0].cpus, "memory": pool.hosts[0].memory,
                "single_host": pool.single_host, "spans": pool.spans,
            }  # fmt: skip
        if pool.enforce != ENFORCED:
            values["enforce"] = pool.enforce
        if pool.executor:
            values["executor"] = pool.executor
        if pool.executor == "dask":
            values |= {"address": pool.address, "directory": pool.directory, "timeout": format_duration(pool.timeout)}
        lines += ["", "[[pool]]", *(f"{name} = {_quoted(value)}" for name, value in values.items())]
        lines += machine_as_toml(pool.machine, "pool.machine") if pool.machine is not None else []
    for queue in settings.queues:
        lines += ["", "[[queue]]"]
        for key in KEYS:
            if key.table == QUEUE and getattr(queue, key.name) is not None:
                lines.append(f"{key.name} = {_written(key, getattr(queue, key.name))}")
    return "\n".join(lines) + "\n"


def _written(key: Key, value: Any) -> str:
    if key.kind == "time":
        return _quoted(format_duration(value))
    return _quoted(value)


def _quoted(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(_quoted(each) for each in value)}]"
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
