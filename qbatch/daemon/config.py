"""The configuration file (TOML): read into :class:`qbatch.daemon.settings.Settings`, and written from it.

An unknown key is refused, and the message names the nearest known one.  A file is accepted as a whole or not at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import structs

from qbatch.daemon.settings import (
    ENFORCED,
    KEYS,
    POOL,
    QUEUE,
    TOP,
    Pool,
    Queue,
    Settings,
    check_host_names,
    duration,
    pool_on,
    written,
)
from qbatch.model.errors import InputError, QbatchError, suggestion
from qbatch.model.machine import Host, Machine
from qbatch.model.machine_file import machine_as_toml, machine_of_tables
from qbatch.model.toml_text import TomlText
from qbatch.wire.resources import format_duration
from qbatch.workloads.machines import SHIPPED, load_machine

OF_DASK = ("address", "directory", "timeout")
"""Keys of a pool of Dask workers."""


def default_settings() -> Settings:
    """Return the configuration of a daemon without a file: four hosts of 16 processors, three queues."""
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
    """Read a configuration file; the machine files that it names are relative to its folder.

    Raises:
        InputError: the file cannot be read or used; the message has the key, its line, the reason and the way out.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path}: {reason}") from error
    return parse_config(text, str(path), path.parent)


def parse_config(text: str, source: str, folder: Path = Path()) -> Settings:
    """Return the settings that a TOML text describes; ``folder``: where the machine files are that it names.

    Raises:
        InputError: the message has the key, its line, the reason and the way out.
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
    fields = {key.field: top[key.name] for key in KEYS if key.table == TOP and key.name in top}
    settings = Settings(pools=pools, queues=queues, **fields)
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
    _check_executor(reader, table, values)
    return Pool(name=name, hosts=hosts, policy=values.pop("policy", policy), **values)


def _pool_on(
    reader: TomlText, table: dict[str, Any], values: dict[str, Any], policy: str, place: int, folder: Path
) -> Pool:
    """Return the pool with the hosts of a machine file; ``values``: the values of its table."""
    for name in ("hosts", "cpus", "memory", "single_host", "spans"):
        if name in values:
            raise reader.error(
                name, "does not go together with machine, which defines it itself; leave one out", None, table
            )
    said = values["machine"]
    try:
        machine = machine_of_tables(reader, said) if isinstance(said, dict) else load_machine(_beside(said, folder))
        check_hosts(machine)
    except InputError as error:
        raise error if isinstance(said, dict) else reader.error("machine", str(error), said, table) from error
    _check_executor(reader, table, values)
    name, runtime = values.get("name", _usual_name(place)), values.get("runtime", "walltime")
    found = pool_on(machine, name, values.get("policy", policy), runtime)
    return structs.replace(found, **{key: values[key] for key in ("enforce", "executor", *OF_DASK) if key in values})


def _beside(name: str, folder: Path) -> str:
    """Return the path of a machine file that a configuration names: inside ``folder`` if it is there, else as it is."""
    path = folder / name
    return str(path) if path.is_file() or name not in SHIPPED else name


def _usual_name(place: int) -> str:
    return "main" if place == 0 else f"pool{place + 1}"


def check_hosts(machine: Machine) -> None:
    """Refuse a machine if PBS clients could not read the name of one of its hosts.

    Raises:
        InputError: the message has the first such name.
    """
    try:
        check_host_names([host.name for host in machine.hosts])
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


def _check_executor(reader: TomlText, table: dict[str, Any], values: dict[str, Any]) -> None:
    """Refuse a pool of Dask workers without a scheduler, and keys of Dask in another pool.

    Raises:
        InputError: the pool is refused.
    """
    is_dask = values.get("executor") == "dask"
    if is_dask and "address" not in values:
        text = '"dask" needs address, that of the scheduler; for example address = "tcp://head:8786"'
        raise reader.error("executor", text, None, table)
    for name in OF_DASK:
        if name in values and not is_dask:
            raise reader.error(name, 'goes only with executor = "dask"; write that too, or leave this out', None, table)
    if values.get("timeout") == 0:
        raise reader.error("timeout", "0 takes hosts down at once; write at least one second, such as timeout = 30", None, table)


def _check_executors(reader: TomlText, executor: str, pools: tuple[Pool, ...]) -> None:
    """Refuse pools that run scripts on a server that emulates jobs.

    Raises:
        InputError: there is such a pool.
    """
    if executor == "emulated" and any(pool.executor for pool in pools):
        table = next((each for each in reader.tables("pool") if "executor" in each), None)
        text = 'in a [[pool]] does not go together with "emulated" at the top; leave one out (--executor emulated emulates all)'
        raise reader.error("executor", text, None, table)


def _check_hosts_apart(reader: TomlText, settings: Settings) -> None:
    """Refuse a host that is in two pools, or twice in one."""
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
    _check_executors(reader, settings.executor, settings.pools)
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
    """Check and return the values of one table."""
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
            read = known[name].read(value)
        except (ValueError, QbatchError) as error:
            raise reader.error(name, str(error), value, place) from error
        if read is not None:
            values[name] = read
    return values


def emulated(pools: tuple[Pool, ...]) -> tuple[Pool, ...]:
    """Return pools for emulated jobs: without the settings of where scripts run."""
    usual = {field.name: field.default for field in structs.fields(Pool) if field.name in ("executor", *OF_DASK)}
    return tuple(structs.replace(pool, **usual) for pool in pools)


def as_toml(settings: Settings) -> str:
    """Return a TOML text of the settings; reading it gives the same settings."""
    lines = _lines(settings, TOP)
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
        lines += ["", "[[pool]]", *(f"{name} = {written(value)}" for name, value in values.items())]
        lines += machine_as_toml(pool.machine, "pool.machine") if pool.machine is not None else []
    for queue in settings.queues:
        lines += ["", "[[queue]]", *_lines(queue, QUEUE)]
    return "\n".join(lines) + "\n"


def _lines(values: Settings | Queue, table: str) -> list[str]:
    """Return the lines of a table: one for each key with a value."""
    lines = []
    for key in KEYS:
        value = getattr(values, key.field) if key.table == table and key.field != "pools" else None
        if value is not None:
            lines.append(f"{key.name} = {written(format_duration(value) if key.read is duration else value)}")
    return lines
