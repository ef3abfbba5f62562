"""The jobs of the generated cluster: drawn kind by kind until each has its share of the work.

The same arguments give the same log on every machine: raw words of PCG64, whole numbers, and no
transcendental function (``qbatch.workloads.draws``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from qbatch.model.errors import UsageError
from qbatch.model.machine import Machine, memory_text
from qbatch.workloads.cluster.hosts import GB, MODELS, counts_of, machine_of
from qbatch.workloads.cluster.kinds import (
    ARRAY_TASKS_MAX,
    DAILY,
    DAY_S,
    FACTOR_PERCENT,
    FAILED_SHORTER,
    HOUR_S,
    HOURLY,
    INTERACTIVE_HOURLY,
    KINDS,
    LIMIT_PERCENT,
    TIMEOUT_PERCENT,
    Kind,
)
from qbatch.workloads.draws import Draws
from qbatch.workloads.generate import generated_log
from qbatch.workloads.log import Column, Log
from qbatch.workloads.side_file import SideText, side_bytes

DAYS_MAX, NODES_MIN, NODES_MAX = 366, 8, 1024
LOAD_MIN, LOAD_MAX = 0.01, 4.0

COLUMNS = (
    "job",
    "nodes",
    "cpus_per_node",
    "memory_per_node",
    "gpus_per_node",
    "gpu_type",
    "features",
    "partitions",
    "exclusive",
)
"""The columns of the side file."""

COMPLETED, FAILED, CANCELLED = 1, 0, 5
"""Values of the field status of SWF."""

_STREAM = 11
_SUBMISSIONS_AT_ONCE = 1024
_GROUPS = 12


class GeneratedCluster(NamedTuple):
    """A generated log, its machine, and what its jobs ask for.

    ``requests``: by job the cells of its line in the side file (``COLUMNS``), after the number.  ``gpus``: by
    job, 0 for jobs without any.
    """

    log: Log
    machine: Machine
    requests: tuple[tuple[str, ...], ...]
    gpus: Column


class _Drawn(NamedTuple):
    """Jobs of one kind; each column has a value for each job.

    ``size`` and ``ask`` are indices into the tables of the kind.
    """

    submit: Column
    run: Column
    requested: Column
    status: Column
    user: Column
    size: Column
    ask: Column
    cpus: Column
    memory_gb: Column
    exclusive: Column


def generate_cluster(
    *, days: int = 30, nodes: int = 64, load: float = 0.8, seed: int = 1
) -> GeneratedCluster:
    """Return the generated jobs of some days on a cluster of this many nodes.

    Args:
        days: submissions fall into so many days, from a Monday, 00:00 UTC.
        nodes: a quarter of them has no GPUs.
        load: GPU time of the jobs (GPUs x run time) over that of the cluster in those days.  The
            jobs on the nodes of each model ask for this share; those without GPUs ask for this
            share of the processors of the nodes without GPUs.
        seed: the same arguments give the same jobs.

    Raises:
        UsageError: a value is out of range.
    """
    for is_right, wrong in (
        (1 <= days <= DAYS_MAX, f"--days is {days}; use 1 to {DAYS_MAX}"),
        (NODES_MIN <= nodes <= NODES_MAX, f"--nodes is {nodes}; use {NODES_MIN} to {NODES_MAX:,}"),
        (
            LOAD_MIN <= load <= LOAD_MAX,
            f"--load is {load:g}; use {LOAD_MIN:g} to {LOAD_MAX:g}, for example 0.8",
        ),
        (seed >= 0, f"--seed is {seed}; use 0 or more"),
    ):
        if not is_right:
            raise UsageError(f"generate cluster: {wrong}")
    machine, counts = machine_of(nodes), counts_of(nodes)
    users = max(8, sum(MODELS[name].gpus * count for name, count in counts.items()) // 3)
    queues = {number: each.name for number, each in enumerate(machine.partitions, 1)}
    numbers = {name: number for number, name in queues.items()}
    parts: list[dict[str, Column]] = []
    requests: list[tuple[str, ...]] = []
    for place, kind in enumerate(KINDS):
        hosts, model = counts[kind.model], MODELS[kind.model]
        kind = kind._replace(sizes=_fitting_sizes(kind, hosts))
        capacity = hosts * (model.gpus or model.cpus) * days * DAY_S
        work = max(1, round(capacity * load * kind.percent / 100))
        drawn = _jobs_of(kind, Draws((seed, _STREAM, place)), work, days, users)
        parts.append(_columns(kind, drawn, numbers))
        requests += _requests(kind, drawn)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(columns["submit"], kind="stable")
    values = {name: column[order] for name, column in columns.items()}
    gpus = values.pop("gpus")
    values["job"] = np.arange(1, len(order) + 1)
    command = f"qbatch generate cluster --days {days} --nodes {nodes} --load {load!r} --seed {seed}"
    log = generated_log(
        "cluster",
        command,
        values,
        computer="none (generated GPU cluster)",
        procs=machine.procs,
        nodes=nodes,
        longest_s=max(kind.limits_s[-1] for kind in KINDS),
        queues=queues,
        notes=("what a job asks for is in the side file of resources; no real user submits",),
    )
    return GeneratedCluster(
        log, machine, tuple(requests[row] for row in order.tolist()), np.asarray(gpus)
    )


def _fitting_sizes(kind: Kind, hosts: int) -> tuple[tuple[int, int, int], ...]:
    most = max(hosts // 2, 1)
    return tuple(size for size in kind.sizes if size[1] <= most)


def _jobs_of(kind: Kind, draws: Draws, work: int, days: int, users: int) -> _Drawn:
    """Return jobs of a kind with this much work, in unit-seconds; the last one runs for as long as
    is left."""
    units = np.array([nodes * each for _, nodes, each in kind.sizes])
    blocks: list[_Drawn] = []
    left = work
    while True:
        block = _block(kind, draws, days, users)
        upto = np.cumsum(units[block.size] * block.run)
        if int(upto[-1]) < left:
            blocks.append(block)
            left -= int(upto[-1])
            continue
        last = int(np.searchsorted(upto, left))
        before = int(upto[last - 1]) if last else 0
        block.run[last] = max(1, (left - before) // int(units[block.size[last]]))
        blocks.append(_Drawn(*(column[: last + 1] for column in block)))
        break
    return _Drawn(*(np.concatenate(columns) for columns in zip(*blocks, strict=True)))


def _block(kind: Kind, draws: Draws, days: int, users: int) -> _Drawn:
    """Draw some submissions of a kind: single jobs, and arrays of equal tasks."""
    count = _SUBMISSIONS_AT_ONCE
    is_array = draws.below(1000, count) < kind.array_per_mille
    tasks = np.where(is_array, 2 + draws.below(ARRAY_TASKS_MAX - 1, count), 1)
    of = np.repeat(np.arange(count), tasks)
    first = np.cumsum(tasks) - tasks
    limits = np.array([each for each in kind.limits_s if each <= days * DAY_S])
    base = 1 << kind.octave + draws.weighted(kind.octaves, count)[of]
    run = np.minimum(base + draws.below(base, len(of)), limits[-1])
    factor = FACTOR_PERCENT[0] + draws.below(FACTOR_PERCENT[1] - FACTOR_PERCENT[0], count)
    wished = -(-np.maximum.reduceat(run, first) * factor // 100)
    requested = limits[np.minimum(np.searchsorted(limits, wished), len(limits) - 1)]
    asks_most = draws.below(100, count) < LIMIT_PERCENT
    requested = np.where(asks_most, limits[-1], requested)[of]
    drawn = draws.below(100, len(of))
    status = np.where(drawn < kind.failed_percent + kind.cancelled_percent, CANCELLED, COMPLETED)
    status = np.where(drawn < kind.failed_percent, FAILED, status)
    run = np.where(status == FAILED, np.maximum(run // FAILED_SHORTER, 1), run)
    is_late = (draws.below(100, len(of)) < TIMEOUT_PERCENT) & ~asks_most[of] & (status == COMPLETED)
    hours = np.arange(days * 24)
    hourly = INTERACTIVE_HOURLY if kind.is_interactive else HOURLY
    weights = np.array(hourly)[hours % 24] * np.array(DAILY)[hours // 24 % 7]
    submit = draws.weighted(weights, count) * HOUR_S + draws.below(HOUR_S, count)
    user = 1 + draws.weighted([1_000_000 // rank for rank in range(1, users + 1)], count)
    return _Drawn(
        submit=submit[of],
        run=np.where(is_late, requested, run),
        requested=requested,
        status=np.where(is_late, FAILED, status),
        user=user[of],
        size=draws.weighted([weight for weight, _, _ in kind.sizes], count)[of],
        ask=draws.weighted([each.weight for each in kind.asks], count)[of],
        cpus=np.array(kind.cpus)[draws.below(len(kind.cpus), count)][of],
        memory_gb=np.array(kind.memory_gb)[draws.below(len(kind.memory_gb), count)][of],
        exclusive=(draws.below(100, count) < kind.exclusive_percent)[of],
    )


def cluster_log(*, days: int = 30, nodes: int = 64, load: float = 0.8, seed: int = 1) -> Log:
    """Return the log of :func:`generate_cluster` with its side file and its machine.

    Raises:
        UsageError: a value is out of range.
    """
    made = generate_cluster(days=days, nodes=nodes, load=load, seed=seed)
    rows = ((job, *cells) for job, cells in enumerate(made.requests, 1))
    side = SideText(made.log.name, side_bytes(COLUMNS, rows))
    return replace(made.log, side=side, machine=made.machine)


def _columns(kind: Kind, drawn: _Drawn, queues: dict[str, int]) -> dict[str, Column]:
    """Return the columns of the log for jobs of a kind, and their GPUs."""
    nodes = np.array([nodes for _, nodes, _ in kind.sizes])[drawn.size]
    units = np.array([units for _, _, units in kind.sizes])[drawn.size]
    procs = nodes * units * drawn.cpus
    queue = np.array([queues[each.partitions.split(",")[0]] for each in kind.asks])
    has_gpus = MODELS[kind.model].gpus > 0
    return {
        "submit": drawn.submit,
        "run": drawn.run,
        "procs_allocated": procs,
        "procs_requested": procs,
        "time_requested": drawn.requested,
        "memory_requested": drawn.memory_gb * (GB // 1024) // drawn.cpus,
        "status": drawn.status,
        "user": drawn.user,
        "group": (drawn.user - 1) % _GROUPS + 1,
        "queue": queue[drawn.ask],
        "gpus": nodes * units if has_gpus else 0 * nodes,
    }


def _requests(kind: Kind, drawn: _Drawn) -> list[tuple[str, ...]]:
    """Return the cells of the side file for jobs of a kind."""
    has_gpus = MODELS[kind.model].gpus > 0
    known: dict[tuple[int, ...], tuple[str, ...]] = {}
    rows = zip(
        *(
            column.tolist()
            for column in (drawn.size, drawn.ask, drawn.cpus, drawn.memory_gb, drawn.exclusive)
        ),
        strict=True,
    )
    found = []
    for row in rows:
        if row not in known:
            size, place, cpus, memory_gb, is_exclusive = row
            _, nodes, units = kind.sizes[size]
            ask = kind.asks[place]
            known[row] = (
                str(nodes),
                str(units * cpus),
                memory_text(units * memory_gb * GB),
                str(units if has_gpus else 0),
                ask.gpu_type,
                ask.features,
                ask.partitions,
                str(int(is_exclusive)),
            )
        found.append(known[row])
    return found
