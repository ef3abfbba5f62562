"""Reinforcement learning: an environment of Gymnasium in which an agent schedules a log, and the
agent as a policy.

The environment and the policy ask the same question in the same way: a pass offers the first
waiting jobs and what is free, and the agent names the job that starts next.  So an agent that was
trained here can be replayed with other policies, and can decide on a live server.  It needs the
extra ``gym``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from qbatch.library.experiment import experiment_of, machine_of
from qbatch.library.logs import LogLike, log_of
from qbatch.library.replaying import MachineLike
from qbatch.library.replaying import machine as machine_from
from qbatch.metrics import measure
from qbatch.metrics.table import METRICS
from qbatch.model.actions import Action, Start
from qbatch.model.errors import UsageError, suggestion
from qbatch.model.machine import Machine
from qbatch.model.record import Schedule
from qbatch.planning.kernels import agent
from qbatch.planning.kernels.agent import FEATURES, GENERAL, AgentTables
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import NO_JOB, PARTS, Needs
from qbatch.planning.policy import Compiled
from qbatch.planning.view import View, jobs_of
from qbatch.simulation.compiled import CompiledReplay
from qbatch.simulation.prepare import Options

Observation = NDArray[np.float32]
Reward = str | Callable[[Schedule], float]
"""A metric by name, or a function of the schedule of an episode."""

_NEEDS = Needs(reads=PARTS, has_hosts=True, has_timers=True)
_next_step, _scan_order = entry_to(agent.next_step), entry_to(agent.scan_order)


class SchedulingEnv(gymnasium.Env[Observation, np.int64]):
    """An episode schedules some consecutive jobs of a log; each step chooses the waiting job that
    starts next.

    The observation is a vector of ``jobs * 5 + 2`` numbers from 0 to 1.  It begins with the
    ``FEATURES`` of each of the first ``jobs`` waiting jobs, in order of submission.  The last two
    are the free processors as a share, and q / (q + 32) for the length q of the queue.

    The action is the place of a job among them.  A job that fits starts, and time stands still.  A
    job that does not fit starts as soon as it fits, before all others.  The action ``jobs``, or a
    place without a job, starts none until something changes: a job ends or arrives.  Where nothing
    runs it starts the first job.  ``info["action_mask"]`` shows which places hold a job.

    The reward is 0 in each step but the last.  There it is the metric, negative where less is
    better.

    Args:
        log: a log or its path, as for :func:`qbatch.replay`.
        procs, machine: the machine, as for :func:`qbatch.replay`.
        jobs: waiting jobs that are observed.
        length: jobs of an episode; its first one is drawn in ``reset``, by the seed given there.
        reward: the name of a metric (``qbatch metrics`` lists them), or a function of the
            :class:`~qbatch.model.record.Schedule`.
        backfill: while the chosen job does not fit, start others that do not delay it, as EASY
            does.
        estimates, load: as for :func:`qbatch.replay`.

    Raises:
        InputError: the log or the machine cannot be used.
        UsageError: a number is out of range, or there is no such metric.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012, as Gymnasium declares it

    def __init__(
        self,
        log: LogLike,
        *,
        procs: int | None = None,
        machine: MachineLike | None = None,
        jobs: int = 32,
        length: int = 256,
        reward: Reward = "bounded_slowdown_mean",
        backfill: bool = False,
        estimates: str = "log",
        load: float = 1.0,
    ) -> None:
        if jobs < 1 or length < 1:
            raise UsageError(f"jobs={jobs}, length={length}: use 1 or more")
        self._reward = reward_of(reward)
        read = log_of(log).log
        self.machine: Machine = (
            machine_of(read, procs, None) if machine is None else machine_from(machine)
        )
        self._work = experiment_of(read, self.machine, Options(estimates=estimates, load=load)).work
        self._length = min(length, len(self._work))
        self._tables = new_tables(jobs, backfills=backfill)
        self._agent, self._shown = self._tables.agent[0], self._tables.shown
        self._compiled = Compiled(agent.decide, _NEEDS, lambda _work, _machine: self._tables)
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, self._shown.shape, np.float32)
        self.action_space = gymnasium.spaces.Discrete(jobs + 1)
        self.schedule: Schedule | None = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode: ``options={"first": N}`` begins with job N of the log (counted from 0),
        else one is drawn."""
        super().reset(seed=seed)
        last = len(self._work) - self._length
        first = (options or {}).get("first")
        first = int(self.np_random.integers(last + 1)) if first is None else int(first)
        if not 0 <= first <= last:
            raise UsageError(f"first={first}: use 0 to {last}")
        self._agent["step"], self._agent["row"] = agent.OVER, NO_JOB
        rows = np.arange(first, first + self._length)
        self._replay = CompiledReplay(self._work.only(rows), self.machine, self._compiled, "agent")
        self._stops, self._counts = self._replay.stops(), self._replay.state.counts[0]
        self.schedule = None
        next(self._stops)
        return self._observed()

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Start a job, choose one that waits until it fits, or wait; return the next observation
        and the reward."""
        self._agent["choice"], self._counts["until"] = action, FOREVER
        if next(self._stops, None) is not None:
            observation, info = self._observed()
            return observation, 0.0, False, False, info
        self.schedule = self._replay.schedule()
        self._shown[:] = 0
        observation, info = self._observed()
        return observation, self._reward(self.schedule), True, False, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions name a job, or none (the last): what MaskablePPO of sb3-contrib asks
        for."""
        return self._mask.view(np.bool_)

    def _observed(self) -> tuple[Observation, dict[str, Any]]:
        self._mask = np.append(self._shown[: -GENERAL : len(FEATURES)], 1.0).astype(np.int8)
        return self._shown.copy(), {"action_mask": self._mask}


class AgentPolicy:
    """An agent as a policy, for a replay with other policies or for a live server.

    Args:
        predict: returns the action for an observation of :class:`SchedulingEnv`.  It must return
            the same action for the same observation, or a replay cannot be repeated.
        jobs, backfill: those of the environment in which the agent was trained.
        name: what tables call it.
    """

    def __init__(
        self,
        predict: Callable[[Observation], Any],
        *,
        jobs: int = 32,
        backfill: bool = False,
        name: str = "agent",
    ) -> None:
        self.name = name
        self._predict, self._jobs, self._backfill = predict, jobs, backfill

    def new_memory(self, machine: Machine) -> dict[str, int]:
        """Return what is kept between passes: the row that starts as soon as it fits, none yet."""
        return {"row": NO_JOB}

    def decide(self, view: View) -> list[Action]:
        """Ask the agent until it chooses no job, or one that does not fit."""
        memory, resources, jobs = view.memory, view.resources, jobs_of(view)
        tables = new_tables(self._jobs, backfills=self._backfill)
        chosen = tables.agent[0]
        if memory["row"] not in view.withdrawn:
            chosen["row"] = memory["row"]
        rows, is_idle = view.queue, not view.running
        starts: list[Start] = []
        while True:
            begun = np.array([start.row for start in starts], np.int64)
            free, widest = _left_by(view, starts)
            there = view.machine.procs
            step = _next_step(view.now, rows, begun, jobs, widest, free, there, is_idle, tables)
            if step == agent.OVER:
                memory["row"] = int(chosen["row"])
                return list[Action](starts)
            if step == agent.ASK:
                chosen["choice"] = int(self._predict(tables.shown.copy()))
            else:
                order = _scan_order(rows, begun, tables)
                starts, _ = resources.list_pass(order, 1 if step == agent.BACKFILL else 0)


def new_tables(jobs: int, *, backfills: bool) -> AgentTables:
    """Return the tables of an agent that is shown ``jobs`` waiting jobs and has chosen none."""
    shown = np.zeros(jobs * len(FEATURES) + GENERAL, np.float32)
    tables = AgentTables(np.zeros(1, agent.AGENT), shown)
    tables.agent["backfills"], tables.agent["row"] = backfills, NO_JOB
    return tables


def _left_by(view: View, starts: list[Start]) -> tuple[int, int]:
    """Return the processors that starts leave free, on all hosts, and for the widest job."""
    free_now = view.free_now()
    for start in starts:
        if start.allocation:
            free_now.give(start.allocation)
        else:
            free_now.place(view.jobs[start.row])
    return sum(free_now.free), view.window.kind.widest(view.machine, free_now.free)


def reward_of(given: Reward) -> Callable[[Schedule], float]:
    """Return the function of a schedule that a reward names.

    Raises:
        UsageError: there is no such metric.
    """
    if not isinstance(given, str):
        return given
    metric = next((each for each in METRICS if each.name == given), None)
    if metric is None:
        raise UsageError(
            f"reward {given!r}: there is no such "
            f"metric{suggestion(given, [each.name for each in METRICS])}"
        )
    sign = -1.0 if metric.is_less_better else 1.0

    def of(schedule: Schedule) -> float:
        value = measure(schedule, costly=given == "loss_of_capacity").get(given)
        return 0.0 if value is None else sign * float(value)

    return of
