"""The configuration file (TOML): read into :class:`qbatch.daemon.settings.Settings`, and written
from it.

An unknown key is refused, and the message names the nearest known one.  A file is accepted as a
whole or not at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import structs

from qbatch.daemon.core.reservations import windows_from
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
from qbatch.model.machine import Host
from qbatch.model.machine_file import machine_as_toml, machine_of_tables
from qbatch.model.toml_text import TomlText
from qbatch.wire.resources import format_duration
from qbatch.workloads.machines import SHIPPED, load_machine

OF_DASK = ("address", "directory", "timeout")
"""Keys of a pool of Dask workers."""


def default_settings() -> Settings:
    """Return the configuration of a daemon without a file: four hosts of 16 processors, three
    queues."""
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
        InputError: the file cannot be read or used; the message has the key, its line, the reason
            and the way out.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path}: {reason}") from error
    return parse_config(text, str(path), path.parent)


def parse_config(text: str, source: str, folder: Path = Path()) -> Settings:
    """Return the settings that a TOML text describes; ``folder``: where the machine files are that
    it names.

    Raises:
        InputError: the message has the key, its line, the reason and the way out.
    """
    reader = TomlText(text, source)
    plain = {name: value for name, value in reader.document.items() if name not in (POOL, QUEUE)}
    top = _table(reader, plain, TOP)
    policy = top.pop("policy", "easy")
    pools = tuple(
        _pool(reader, table, policy, place, folder)
        for place, table in enumerate(reader.tables(POOL))
    )
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
    """Return the pool of the table at this place; a machine file is looked for in ``folder``
    first."""
    values = _table(reader, table, POOL)
    name, policy = (
        values.pop("name", f"pool{place + 1}" if place else "main"),
        values.pop("policy", policy),
    )
    if "machine" not in values:
        for key in ("hosts", "cpus"):
            if key not in values:
                text = (
                    f'needs {key}; for example hosts = "n[01-04]" and cpus = 16, or machine = '
                    '"FILE"'
                )
                raise reader.error(POOL, text, None, table)
        cpus, memory = values.pop("cpus"), values.pop("memory", 0)
        hosts = tuple(Host(each, cpus, memory, name) for each in values.pop("hosts"))
        if values.get("single_host") and values.get("spans"):
            raise reader.error("spans", "does not go together with single_host", None, table)
        _check_executor(reader, table, values)
        return Pool(name=name, hosts=hosts, policy=policy, **values)
    for key in ("hosts", "cpus", "memory", "single_host", "spans"):
        if key in values:
            raise reader.error(
                key,
                "does not go together with machine, which defines it itself; leave one out",
                None,
                table,
            )
    given = values.pop("machine")
    try:
        if isinstance(given, dict):
            machine = machine_of_tables(reader, given)
        else:
            path = folder / given
            machine = load_machine(str(path) if path.is_file() or given not in SHIPPED else given)
        windows_from(machine.reservations, 0, may_overlap=False)
        check_host_names(host.name for host in machine.real_hosts)
    except InputError as error:
        raise (
            error if isinstance(given, dict) else reader.error("machine", str(error), given, table)
        ) from error
    _check_executor(reader, table, values)
    return structs.replace(
        pool_on(machine, name, policy, values.pop("runtime", "walltime")), **values
    )


def _queue(reader: TomlText, table: dict[str, Any]) -> Queue:
    values = _table(reader, table, QUEUE)
    if "name" not in values:
        raise reader.error(QUEUE, "needs a name", None, table)
    queue = Queue(**values)
    longest = queue.max_walltime
    if longest is not None and queue.default_walltime > longest:
        if "default_walltime" in values:
            text = (
                f"queue {queue.name}: it is longer than max_walltime, so a job that gives none "
                "would be refused"
            )
            raise reader.error("default_walltime", text, None, table)
        return structs.replace(queue, default_walltime=longest)
    return queue


def _check_executor(reader: TomlText, table: dict[str, Any], values: dict[str, Any]) -> None:
    """Refuse a pool of Dask workers without a scheduler, and keys of Dask in another pool."""
    is_dask = values.get("executor") == "dask"
    if is_dask and "address" not in values:
        text = (
            '"dask" needs address, that of the scheduler; for example address = "tcp://head:8786"'
        )
        raise reader.error("executor", text, None, table)
    for name in OF_DASK:
        if name in values and not is_dask:
            raise reader.error(
                name,
                'goes only with executor = "dask"; write that too, or leave this out',
                None,
                table,
            )
    if values.get("timeout") == 0:
        raise reader.error(
            "timeout",
            "0 takes hosts down at once; write at least one second, such as timeout = 30",
            None,
            table,
        )


def _check_hosts_apart(reader: TomlText, settings: Settings) -> None:
    """Refuse a host that is in two pools, or twice in one."""
    tables = reader.tables("pool")
    pool_of: dict[str, str] = {}
    for place, pool in enumerate(settings.pools):
        table = tables[place] if place < len(tables) else {}
        for host in pool.hosts:
            before = pool_of.get(host.name)
            if before is not None:
                why = (
                    "is there twice"
                    if before == pool.name
                    else f"is a host of pool {before!r} already"
                )
                key = "machine" if "machine" in table else "hosts"
                raise reader.error(key, f"{host.name!r} {why}", None, table or None)
            pool_of[host.name] = pool.name


def _check_whole(reader: TomlText, settings: Settings) -> None:
    _check_hosts_apart(reader, settings)
    if settings.executor == "emulated" and any(pool.executor for pool in settings.pools):
        table = next((each for each in reader.tables("pool") if "executor" in each), None)
        text = (
            'in a [[pool]] does not go together with "emulated" at the top; leave one out '
            "(--executor emulated emulates all)"
        )
        raise reader.error("executor", text, None, table)
    queues = {queue.name: queue for queue in settings.queues}
    reserved: set[str] = set()
    for pool in settings.pools:
        for kept in pool.machine.reservations if pool.machine is not None else ():
            if kept.name in queues or kept.name in reserved:
                text = (
                    f"a reservation of pool {pool.name} is named {kept.name!r}, as a queue or another "
                    "reservation is; a reservation is a queue, so give it a name of its own"
                )
                raise reader.error("name", text, kept.name)
            reserved.add(kept.name)
    pools = [pool.name for pool in settings.pools]
    for names in (pools, [queue.name for queue in settings.queues]):
        for place, name in enumerate(names):
            if name in names[:place]:
                raise reader.error("name", f"{name!r} is there twice", name)
    if (default := settings.default_queue) not in queues:
        text = (
            f"there is no queue {default!r}{suggestion(default, queues)}; say which queue "
            "takes "
            "the jobs that name none"
        )
        raise reader.error("default_queue", text)
    for name, queue in queues.items():
        if queue.pool and queue.pool not in pools:
            text = f"queue {name}: there is no pool {queue.pool!r}{suggestion(queue.pool, pools)}"
            raise reader.error("pool", text, queue.pool)
        _check_partition(reader, settings, queue)
        for destination in queue.destinations:
            if destination not in queues or destination == name:
                near = suggestion(destination, queues.keys() - {name})
                raise reader.error(
                    "destinations",
                    f"queue {name}: {destination!r} is no other queue{near}",
                    destination,
                )
            if queues[destination].destinations:
                text = f"queue {name}: {destination!r} is a routing queue itself"
                raise reader.error("destinations", text, destination)


def _check_partition(reader: TomlText, settings: Settings, queue: Queue) -> None:
    """Refuse a queue with a partition that the machine of its pool does not have."""
    machine = settings.pool_of(queue).machine
    known = [each.name for each in machine.partitions] if machine is not None else []
    if queue.partition and queue.partition not in known:
        has = f"it has {', '.join(known)}" if known else "it has none; leave partition out"
        text = (
            f"queue {queue.name}: its pool has no partition {queue.partition!r}"
            f"{suggestion(queue.partition, known)} ({has})"
        )
        raise reader.error("partition", text, queue.partition)


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
            raise reader.error(
                name, f"is not known{inside}{near} (known: {', '.join(known)}{tables})", None, place
            )
        try:
            read = known[name].read(value)
        except (ValueError, QbatchError) as error:
            raise reader.error(name, str(error), value, place) from error
        if read is not None:
            values[name] = read
    return values


def emulated(pools: tuple[Pool, ...]) -> tuple[Pool, ...]:
    """Return pools for emulated jobs: without the settings of where scripts run."""
    usual = {
        field.name: field.default
        for field in structs.fields(Pool)
        if field.name in ("executor", *OF_DASK)
    }
    return tuple(structs.replace(pool, **usual) for pool in pools)


def as_toml(settings: Settings) -> str:
    """Return a TOML text of the settings; reading it gives the same settings."""

    def lines_of(values: Settings | Queue, table: str) -> list[str]:
        pairs = [
            (key, getattr(values, key.field))
            for key in KEYS
            if key.table == table and key.field != "pools"
        ]
        return [
            f"{key.name} = {written(format_duration(value) if key.read is duration else value)}"
            for key, value in pairs
            if value is not None
        ]

    lines = lines_of(settings, TOP)
    for pool in settings.pools:
        values: dict[str, Any] = {"name": pool.name, "policy": pool.policy, "runtime": pool.runtime}
        if pool.machine is None:
            values |= {
                "hosts": tuple(host.name for host in pool.hosts),
                "cpus": pool.hosts[0].cpus,
                "memory": pool.hosts[0].memory,
                "single_host": pool.single_host,
                "spans": pool.spans,
            }
        values |= {"enforce": pool.enforce} if pool.enforce != ENFORCED else {}
        values |= {"executor": pool.executor} if pool.executor else {}
        if pool.executor == "dask":
            values |= {
                "address": pool.address,
                "directory": pool.directory,
                "timeout": format_duration(pool.timeout),
            }
        lines += ["", "[[pool]]", *(f"{name} = {written(value)}" for name, value in values.items())]
        lines += machine_as_toml(pool.machine, "pool.machine") if pool.machine is not None else []
    for queue in settings.queues:
        lines += ["", "[[queue]]", *lines_of(queue, QUEUE)]
    return "\n".join(lines) + "\n"
