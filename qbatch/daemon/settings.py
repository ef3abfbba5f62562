"""The configuration as frozen values: each key is declared at the field that it sets, with its
reader and its meaning.

:mod:`qbatch.daemon.config`, ``qbatch config show --origin`` and ``qbatch config keys`` use these
declarations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Annotated, Any, NamedTuple, get_type_hints

import msgspec
from msgspec import structs

from qbatch.daemon.executors.supervision.usage import CODES
from qbatch.daemon.own_policies import load_tried
from qbatch.model.errors import InputError, UsageError
from qbatch.model.machine import Host, Machine, expand_names, parse_memory
from qbatch.planning.policy import Policy
from qbatch.policies.registry import load_policy, own_class
from qbatch.wire.resource_rules import LENIENCIES
from qbatch.wire.resources import MICROSECONDS, parse_duration

ENFORCED = ("cput", "pcput")
"""Limits that a pool enforces by default: those that OpenPBS always enforces."""

MOST_SHADOWS = 4
"""What-if policies at the same time."""

TOP, POOL, QUEUE = "", "pool", "queue"
"""The tables of a configuration file."""


class Key(NamedTuple):
    """A key of the configuration file.

    ``read`` returns the value for a TOML value (None: as if the key were absent), or raises
    ValueError or a QbatchError. ``default``: in words, if the default of the field does not show
    it.  ``name``: if it differs from that of the field. ``table``, ``field``: the table of the key,
    and the field that it sets.
    """

    read: Callable[[Any], Any]
    meaning: str
    default: str = ""
    name: str = ""
    table: str = TOP
    field: str = ""


# Readers of values; they raise ValueError or a QbatchError


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text; put it in quotes")
    return value


def _name(value: Any) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,14}", text := _text(value)):
        raise ValueError(
            f"{value!r} is not a name: write a letter, then up to 14 letters, digits, - or _"
        )
    return text


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError('must be a list of texts, such as ["a", "b"]')
    return tuple(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) < value < 2**31:
        raise ValueError(f"{value!r} is not a whole number")
    return value


def _count(value: Any) -> int:
    if (number := _integer(value)) < 1:
        raise ValueError(f"{value!r} is not a whole number of at least 1")
    return number


def duration(value: Any) -> int | None:
    """Return a time in seconds or as HH:MM:SS in microseconds; None for an empty text."""
    if value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f'{value!r} is not a time; write seconds, or "HH:MM:SS"')
    return parse_duration(str(value))


def _hosts(value: Any) -> list[str]:
    names = [value] if isinstance(value, str) else list(_texts(value))
    found = [each for name in names for each in expand_names(name)]
    check_host_names(found)
    if not found:
        raise ValueError('must name at least one host, such as "n[1-4]"')
    return found


def check_host_names(names: Iterable[str]) -> None:
    """Refuse a name of a host that PBS clients could not read.

    Raises:
        InputError: the message has the first such name.
    """
    for each in names:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", each):
            raise InputError(
                f"{each!r} is not a name of a host: write letters, digits, - and _ (PBS clients "
                "cut at a dot)"
            )


def _machine(value: Any) -> Any:
    if not isinstance(value, str | dict):
        raise ValueError(
            f'{value!r} is neither the name of a machine file, such as "origin2000", nor its tables'
        )
    return value


def _policy(value: Any) -> str:
    load_tried(text := _text(value))
    return text


def _own_policies(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    for each in names:
        if own_class(each) != each:
            raise ValueError(
                f'{each!r} is not a class of a module, such as "mine:Smallest" (no parameters: all '
                "are allowed)"
            )
    return names


def _shadow_policies(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    if len(names) > MOST_SHADOWS:
        raise ValueError(
            f"{len(names)} policies; at most {MOST_SHADOWS} what-if policies are allowed"
        )
    for each in names:
        load_tried(each)
        shadow_policy(each)
    return names


def shadow_policy(text: str) -> Policy:
    """Return the what-if policy that a text names.

    Raises:
        UsageError: there is no such policy, or it resizes running jobs: the run time of a real job
            is not known, so neither is the work that it would have left after a change.
    """
    policy = load_policy(text)
    if getattr(policy, "is_malleable", False):
        raise UsageError(
            f"policy {text!r} resizes running jobs and cannot be a what-if policy; let it decide "
            "(qbatch policy set), or "
            f"replay the history: qbatch replay --policy {text}"
        )
    return policy


def _address(value: Any) -> str:
    found = (
        re.fullmatch(r"[a-z]+://[^\s/]+:([0-9]{1,5})", value) if isinstance(value, str) else None
    )
    if found is None or not 0 < int(found[1]) < 65536:
        raise ValueError(
            f'{value!r} is not an address of a Dask scheduler, such as "tcp://head:8786"'
        )
    return str(value)


def _runtime(value: Any) -> str:
    parse_runtime(text := _text(value))
    return text


_FORM = re.compile(
    r"\s*(walltime|fixed|uniform|exponential)\s*(?:\(\s*([\d.]+)\s*(?:,\s*([\d.]+)\s*)?\))?\s*"
)


def parse_runtime(text: str) -> tuple[str, int, int]:
    """Return the kind and the parameters in microseconds of a run time such as ``walltime`` or
    ``uniform(10,20)``.

    Raises:
        ValueError: for anything else.
    """
    found = _FORM.fullmatch(text)
    wanted = {"walltime": 0, "fixed": 1, "exponential": 1, "uniform": 2}
    given = 0 if found is None else sum(part is not None for part in found.groups()[1:])
    if found is None or given != wanted[found[1]]:
        raise ValueError(
            f"{text!r} is not a run time; write walltime, fixed(60), uniform(10,20) or "
            "exponential(30)"
        )
    low = round(float(found[2] or 0) * MICROSECONDS)
    high = round(float(found[3] or 0) * MICROSECONDS)
    if found[1] == "uniform" and high < low:
        raise ValueError(f"{text!r}: the second number is smaller than the first")
    return found[1], low, high


def _one_of(*known: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in known:
            raise ValueError(f"{value!r} is not known (known: {', '.join(known)})")
        return str(value)

    return read


def _some_of(known: Collection[str]) -> Callable[[Any], tuple[str, ...]]:
    def read(value: Any) -> tuple[str, ...]:
        for each in _texts(value):
            if each not in known:
                raise ValueError(f"{each!r} is none of {', '.join(known)}")
        return tuple(value)

    return read


# Keys


Texts = tuple[str, ...]


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts that are scheduled together, with a policy of their own; times in microseconds.

    ``machine``: the hosts and classes of jobs of a machine file, which also sets ``single_host``
    and ``spans``.
    """

    name: Annotated[str, Key(_name, "the pool's name", '"main"')]
    machine: Annotated[
        Machine | None,
        Key(
            _machine,
            'hosts and classes of a machine file ("origin2000", "hosts.toml"), or its tables',
        ),
    ] = None
    hosts: Annotated[
        tuple[Host, ...],
        Key(_hosts, 'names of hosts: "n[01-64]" or ["a", "b[1-4]"] (without machine)'),
        Key(_count, "processors of each host (without machine)", name="cpus"),
        Key(parse_memory, 'memory of each host, "64GB"; 0: not counted', "0", name="memory"),
    ]
    policy: Annotated[str, Key(_policy, "the policy of this pool", "as at the top")] = "easy"
    single_host: Annotated[
        bool, Key(_flag, "a job runs inside one host, all its chunks together")
    ] = False
    spans: Annotated[
        bool,
        Key(
            _flag, "only the total of processors counts: a chunk may be split, as in a workload log"
        ),
    ] = False
    runtime: Annotated[
        str, Key(_runtime, "default run time: walltime, fixed(60), uniform(1,9), exponential(30)")
    ] = "walltime"
    enforce: Annotated[
        Texts,
        Key(
            _some_of(CODES), f"what ends a job that uses more than it asked for: {', '.join(CODES)}"
        ),
    ] = ENFORCED
    executor: Annotated[
        str,
        Key(
            _one_of("process", "dask"),
            "dask: each host is the Dask worker of its name, scripts run there",
            "as at the top",
        ),
    ] = ""
    address: Annotated[
        str, Key(_address, 'the Dask scheduler, "tcp://head:8786" (with executor dask)', "none")
    ] = ""
    directory: Annotated[
        str,
        Key(
            _text, 'where Dask workers keep jobs that run ("": their ~/.local/state/qbatch/workers)'
        ),
    ] = ""
    timeout: Annotated[
        int,
        Key(
            duration,
            "seconds that a Dask scheduler or worker may be silent until hosts are down",
            '"30"',
        ),
    ] = 30 * MICROSECONDS


def pool_on(machine: Machine, name: str, policy: str, runtime: str = "walltime") -> Pool:
    """Return the pool of all hosts of a machine file, scheduled as in a replay on that machine."""
    is_single = machine.single_host or len(machine.real_hosts) == 1
    return Pool(
        name=name,
        hosts=machine.real_hosts,
        policy=policy,
        single_host=is_single,
        spans=not is_single,
        runtime=runtime,
        machine=machine,
    )


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue.  Times in microseconds, memory in bytes, None: no limit."""

    name: Annotated[str, Key(_name, "the queue's name")]
    pool: Annotated[str, Key(_text, "the pool in which its jobs run", "the first pool")] = ""
    partition: Annotated[
        str,
        Key(_text, "the partition of the pool's machine in which its jobs run", "the default one"),
    ] = ""
    enabled: Annotated[bool, Key(_flag, "whether it accepts jobs at the start")] = True
    started: Annotated[bool, Key(_flag, "whether its jobs may run at the start")] = True
    priority: Annotated[
        int, Key(_integer, "shown by qstat -Qf; most policies order jobs by arrival")
    ] = 0
    destinations: Annotated[
        Texts,
        Key(_texts, "makes it a routing queue: the first of these that accepts a job gets it"),
    ] = ()
    users: Annotated[Texts, Key(_texts, "only these users may submit ([]: all)")] = ()
    groups: Annotated[Texts, Key(_texts, "only users of these groups may submit ([]: all)")] = ()
    max_queued: Annotated[int | None, Key(_count, "jobs in the queue, running ones included")] = (
        None
    )
    max_queued_per_user: Annotated[int | None, Key(_count, "jobs of one user in the queue")] = None
    max_running: Annotated[
        int | None, Key(_count, "jobs that the policy may have running or next at the same time")
    ] = None
    max_running_per_user: Annotated[int | None, Key(_count, "the same for each user")] = None
    max_procs: Annotated[int | None, Key(_count, "processors of one job")] = None
    min_procs: Annotated[int | None, Key(_count, "processors that a job must ask for")] = None
    max_memory: Annotated[int | None, Key(parse_memory, "memory of one job")] = None
    max_walltime: Annotated[int | None, Key(duration, "walltime of one job")] = None
    min_walltime: Annotated[int | None, Key(duration, "walltime that a job must ask for")] = None
    default_walltime: Annotated[
        int,
        Key(
            duration,
            "walltime of a job that gives none; max_walltime, if that is shorter",
            '"1:00:00"',
        ),
    ] = 3600 * MICROSECONDS
    default_memory: Annotated[
        int, Key(parse_memory, "memory of each chunk of a job that gives none")
    ] = 0


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of the server; times in microseconds.  ``history_kept``: None is for ever."""

    name: Annotated[
        str,
        Key(
            _name,
            "the server's name, the part of a job identifier after the dot (no dots in it)",
            name="server",
        ),
    ] = "qbatch"
    executor: Annotated[
        str,
        Key(
            _one_of("process", "emulated"),
            "process: scripts run for real; emulated: jobs are timers on emulated hosts",
        ),
    ] = "process"
    pools: Annotated[
        tuple[Pool, ...],
        Key(
            _policy,
            "the policy of pools that name none (see: qbatch policies)",
            '"easy"',
            name="policy",
        ),
    ] = ()
    queues: tuple[Queue, ...] = ()
    default_queue: Annotated[
        str, Key(_text, "the queue of a job that names none; the only queue needs no naming")
    ] = "batch"
    operators: Annotated[Texts, Key(_texts, "users who may act on all jobs, queues and hosts")] = ()
    managers: Annotated[
        Texts,
        Key(
            _texts,
            (
                "users who may also stop, reload and back up; root and the daemon's own user "
                "always "
                "may"
            ),
        ),
    ] = ()
    kill_delay: Annotated[int, Key(duration, "seconds from TERM to KILL", '"10"')] = (
        10 * MICROSECONDS
    )
    is_history_shown: Annotated[
        bool, Key(_flag, "whether qstat -x shows finished jobs", name="history")
    ] = True
    history_kept: Annotated[
        int | None,
        Key(
            duration,
            'how long qstat -x shows a finished job ("": for ever, as qbatch history does)',
            '""',
        ),
    ] = None
    max_jobs: Annotated[int, Key(_count, "live jobs that the server accepts")] = 10_000_000
    max_jobs_per_user: Annotated[int | None, Key(_count, "live jobs of one user")] = None
    max_array: Annotated[int, Key(_count, "jobs in one array")] = 10_000
    mail_command: Annotated[
        Texts, Key(_texts, "a program; gets the users as further arguments and the mail on stdin")
    ] = ()
    dialect: Annotated[
        str,
        Key(
            _one_of("openpbs", "torque"),
            "openpbs or torque: the PBS dialect inside jobs (elsewhere: QBATCH_DIALECT)",
        ),
    ] = "openpbs"
    seed: Annotated[int, Key(_count, "seed of the draws of emulated run times")] = 1
    shadows: Annotated[
        Texts,
        Key(
            _shadow_policies,
            "up to four what-if policies, in addition to the real ones (see: qbatch shadow)",
        ),
    ] = ()
    policies: Annotated[
        Texts,
        Key(
            _own_policies,
            (
                'your own policies ("module:Class") that clients may set, in addition to those of '
                "qbatch policies"
            ),
        ),
    ] = ()
    custom_resources: Annotated[
        Texts,
        Key(
            _texts, "resources that jobs may name in addition to those of PBS; shown, never counted"
        ),
    ] = ()
    lenient: Annotated[
        Texts,
        Key(
            _some_of(LENIENCIES),
            f"what is not refused although OpenPBS does: {', '.join(LENIENCIES)}",
        ),
    ] = ()
    forecast_run_times: Annotated[
        str,
        Key(
            _one_of("estimates", "predictions"),
            (
                "how forecasts end jobs: by estimates (walltimes), or by predictions from the last "
                "two "
                "jobs of each user"
            ),
        ),
    ] = "estimates"
    login_shell: Annotated[
        bool,
        Key(
            _flag,
            "whether a job's shell is a login shell and reads the profile files, as in OpenPBS",
        ),
    ] = True

    def pool_of(self, queue: Queue) -> Pool:
        """Return the pool of a queue's jobs: the named one, else the first."""
        return next((pool for pool in self.pools if pool.name == queue.pool), self.pools[0])

    def named_policies(self) -> Texts:
        """Return all policies that the settings name."""
        return (*self.policies, *self.shadows, *(pool.policy for pool in self.pools))


def _keys_of(table: str, kind: type[msgspec.Struct]) -> Iterator[Key]:
    hints = get_type_hints(kind, include_extras=True)
    for field in structs.fields(kind):
        usual = (
            "required"
            if field.default is msgspec.NODEFAULT
            else "none"
            if field.default is None
            else written(field.default)
        )
        for key in getattr(hints[field.name], "__metadata__", ()):
            name, default = key.name or field.name, key.default or usual
            yield key._replace(table=table, field=field.name, name=name, default=default)


def written(value: Any) -> str:
    """Return a value as TOML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(written(each) for each in value)}]"
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


KEYS = (*_keys_of(TOP, Settings), *_keys_of(POOL, Pool), *_keys_of(QUEUE, Queue))
"""Every key of the configuration file."""
