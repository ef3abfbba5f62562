"""The configuration as frozen values, checked; where it comes from is :mod:`qbatch.daemon.config`'s business."""

from __future__ import annotations

import msgspec

from qbatch.model.machine import Host, Machine

SECOND = 1_000_000
"""Microseconds in a second."""

ENFORCED = ("cput", "pcput")
"""Limits that a pool ends jobs for unless it says otherwise: those that OpenPBS always enforces."""

MOST_SHADOWS = 4
"""Policies that can be followed in shadow at once."""


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts that are scheduled together, with a policy of their own.

    ``policy``: as ``--policy`` takes it.  ``single_host``: a job stays inside one host.  ``spans``: processors are
    counted over the whole pool and a chunk may spread over hosts, as in a workload log.  ``runtime``: how long an
    emulated job runs that does not say so itself: ``walltime``, ``fixed(S)``, ``uniform(A,B)``, ``exponential(MEAN)``.
    ``machine``: what a machine file says of the hosts, with classes of jobs; it decides about ``single_host`` and ``spans``.
    ``executor``: ``dask`` where each host is the Dask worker of its name, of the scheduler at ``address``; else as at the top.
    ``directory``: where workers keep their attempts ("": where users' states are).  ``timeout``: microseconds for which the
    scheduler or a worker may be silent until hosts are down.  ``enforce``: which of ``mem``, ``vmem``, ``cput`` and ``pcput`` end
    a job that uses more of them than it asked for.
    """

    name: str
    hosts: tuple[Host, ...]
    policy: str = "easy"
    single_host: bool = False
    spans: bool = False
    runtime: str = "walltime"
    machine: Machine | None = None
    executor: str = ""
    address: str = ""
    directory: str = ""
    timeout: int = 30 * SECOND
    enforce: tuple[str, ...] = ENFORCED


def pool_on(machine: Machine, name: str, policy: str, runtime: str = "walltime") -> Pool:
    """Return the pool of a machine file's hosts, all of them, scheduled as in a replay on that machine."""
    is_single = machine.single_host or len(machine.hosts) == 1
    return Pool(
        name=name, hosts=machine.hosts, policy=policy, single_host=is_single, spans=not is_single, runtime=runtime,
        machine=machine,
    )  # fmt: skip


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue.  Times in microseconds, memory in bytes, None: no limit.  ``destinations`` make it a routing queue."""

    name: str
    pool: str = ""
    enabled: bool = True
    started: bool = True
    priority: int = 0
    destinations: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    max_queued: int | None = None
    max_queued_per_user: int | None = None
    max_running: int | None = None
    max_running_per_user: int | None = None
    max_procs: int | None = None
    min_procs: int | None = None
    max_memory: int | None = None
    max_walltime: int | None = None
    min_walltime: int | None = None
    default_walltime: int = 3600 * SECOND
    default_memory: int = 0


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the server goes by.

    ``executor``: ``process`` or ``emulated``.  ``kill_delay``: from TERM to KILL.  ``history_kept``: how long finished
    jobs show in ``qstat -x`` (None: for ever).  ``dialect``: ``openpbs`` or ``torque``.  ``seed``: of the draws of
    emulated runs.  ``shadows``: the policies that are followed beside the real ones.  ``policies``: classes of users' own
    (``module:Class``) that the socket may set (:mod:`qbatch.daemon.own_policies`).  ``custom_resources``: resources that jobs
    may ask for beside those of PBS; they are shown, and nothing counts them.  ``lenient``: what the server does not refuse
    though OpenPBS does (:mod:`qbatch.wire.resource_rules`).  ``forecast_run_times``: by what forecasts end jobs, ``estimates``
    (their walltimes) or ``predictions`` (:mod:`qbatch.daemon.forecast_run_times`).  ``login_shell``: whether a job's shell
    is a login shell.
    """

    name: str = "qbatch"
    executor: str = "process"
    default_queue: str = "batch"
    pools: tuple[Pool, ...] = ()
    queues: tuple[Queue, ...] = ()
    operators: tuple[str, ...] = ()
    managers: tuple[str, ...] = ()
    kill_delay: int = 10 * SECOND
    history_kept: int | None = None
    is_history_shown: bool = True
    max_array: int = 1_000_000
    max_jobs: int = 10_000_000
    max_jobs_per_user: int | None = None
    mail_command: tuple[str, ...] = ()
    dialect: str = "openpbs"
    seed: int = 1
    shadows: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    custom_resources: tuple[str, ...] = ()
    lenient: tuple[str, ...] = ()
    forecast_run_times: str = "estimates"
    login_shell: bool = True

    def pool_of(self, queue: Queue) -> Pool:
        """Return the pool that a queue's jobs run in: the named one, else the first."""
        return next((pool for pool in self.pools if pool.name == queue.pool), self.pools[0])
