"""The Gymnasium environment: it keeps Gymnasium's contract, and an agent schedules as the policy
that it imitates."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import numpy as np
import pytest

import qbatch
from qbatch.library.gym import AgentPolicy, SchedulingEnv, reward_of
from qbatch.metrics import measure
from qbatch.model.errors import UsageError
from qbatch.model.machine import Host, Machine
from qbatch.policies import load_policy
from qbatch.simulation import run
from tests.documents.blocks import ROOT
from tests.golden.cases import MACHINES
from tests.harness import same_places, same_schedule, size

gymnasium = pytest.importorskip("gymnasium")
LOG = str(ROOT / "traces" / "demo-128.swf")


def run_episode(env: SchedulingEnv, choose, **options: int) -> float:
    """Run an episode; ``choose(observation, mask)`` gives the action.  Returns the reward."""
    observation, info = env.reset(options=options or None)
    while True:
        observation, reward, is_over, is_cut, info = env.step(
            choose(observation, info["action_mask"])
        )
        assert not is_cut
        assert reward == 0 or is_over
        if is_over:
            return reward


@pytest.mark.parametrize("backfill", [False, True])
def test_the_checker_of_gymnasium_finds_nothing(backfill: bool) -> None:
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*alternative render modes.*")
        check_env(SchedulingEnv(LOG, jobs=8, length=40, backfill=backfill))


@pytest.mark.parametrize(("policy", "backfill"), [("fcfs", False), ("easy", True)])
def test_an_agent_that_takes_the_first_job_is_fcfs_or_easy(policy: str, backfill: bool) -> None:
    env = SchedulingEnv(LOG, length=2000, backfill=backfill)
    run_episode(env, lambda _seen, _mask: 0, first=0)
    (expected,) = qbatch.replay(LOG, [policy]).schedules
    assert env.schedule is not None
    np.testing.assert_array_equal(env.schedule.start, expected.start)
    mine = AgentPolicy(lambda _seen: 0, backfill=backfill)
    (found,) = qbatch.replay(LOG, [mine], driver="engine").schedules
    np.testing.assert_array_equal(found.start, expected.start)


WHOLE = {name: machine for name, machine in MACHINES.items() if not machine.chunked}


@pytest.mark.parametrize("machine", WHOLE)
@pytest.mark.parametrize(("policy", "backfill"), [("fcfs", False), ("easy", True)])
def test_an_agent_schedules_as_the_policy_that_it_imitates_on_every_machine(
    policy: str, backfill: bool, machine: str, tmp_path: Path
) -> None:
    """Also with jobs of no length, which end at the instant of their start."""
    for seed in range(size(12, 400)):
        draw = random.Random(f"{machine} {seed} of an agent")
        widest = WHOLE[machine].widest_job
        rows, submit = [], 0
        for number in range(1, draw.randint(2, 14)):
            submit += draw.choice((0, 0, 1, 3))
            procs, run, more = (
                draw.randint(1, widest),
                draw.choice((0, 0, 1, 5)),
                draw.randint(0, 5),
            )
            rows.append(
                f"{number} {submit} -1 {run} {procs} -1 -1 {procs} {run + more}" + " -1" * 9
            )
        log = tmp_path / f"{seed}.swf"
        log.write_text("\n".join(rows) + "\n")
        env = SchedulingEnv(str(log), machine=WHOLE[machine], length=99, backfill=backfill)
        run_episode(env, lambda _seen, _mask: 0, first=0)
        mine = AgentPolicy(lambda _seen: 0, backfill=backfill)
        named, agent = qbatch.replay(str(log), [policy, mine], machine=WHOLE[machine]).schedules
        for each in (env.schedule, agent):
            assert each is not None
            assert same_places(each, named), rows


def test_an_agent_that_backfills_on_hosts_starts_each_job_once(tmp_path: Path) -> None:
    log = tmp_path / "three.swf"
    jobs = [(0, 1), (0, 2), (0, 1)]
    lines = [f"{n} {at} -1 10 {p} -1 -1 {p} 10" + " -1" * 9 for n, (at, p) in enumerate(jobs, 1)]
    log.write_text("\n".join(lines) + "\n")
    machine = Machine((Host("a", 2), Host("b", 1)), single_host=True)
    mine = AgentPolicy(lambda _seen: 0, backfill=True)
    named, agent = qbatch.replay(str(log), ["easy", mine], machine=machine, audit=True).schedules
    assert agent.start.tolist() == named.start.tolist() == [0, 0, 10_000_000]


def choose_by_sum(seen: np.ndarray) -> int:
    """An agent without sense that sees everything: sometimes it chooses a place without a job, or
    none."""
    return int(np.frombuffer(seen.tobytes(), np.uint8).sum()) % 9


@pytest.mark.parametrize("machine", [None, "origin2000"])
@pytest.mark.parametrize("backfill", [False, True])
def test_an_agent_is_shown_the_same_as_a_policy_and_decides_the_same(
    machine, backfill: bool
) -> None:
    log = LOG if machine is None else qbatch.generate("origin2000", month="2000-01", warmup_days=0)
    env = SchedulingEnv(log, machine=machine, jobs=8, length=300, backfill=backfill)
    run_episode(env, lambda seen, _mask: choose_by_sum(seen), first=0)
    mine = AgentPolicy(choose_by_sum, jobs=8, backfill=backfill)
    (found,) = qbatch.replay(log, [mine], machine=machine, first=300, audit=True).schedules
    assert env.schedule is not None
    np.testing.assert_array_equal(found.start, env.schedule.start)


def test_the_mask_names_the_places_with_a_job_and_the_observation_stays_inside_its_space() -> None:
    env = SchedulingEnv(LOG, jobs=5, length=100)
    draw = np.random.default_rng(1)

    def choose(seen: np.ndarray, mask: np.ndarray) -> int:
        assert env.observation_space.contains(seen)
        assert mask[-1] == 1
        assert (mask[:-1] == seen[:-2:5]).all()
        assert (env.action_masks() == mask.astype(bool)).all()
        return int(draw.choice(np.flatnonzero(mask)))

    assert run_episode(env, choose) < 0


def test_the_reward_is_the_metric_of_the_schedule_or_what_a_function_makes_of_it() -> None:
    env = SchedulingEnv(LOG, length=50, reward="utilisation_makespan")
    reward = run_episode(env, lambda _seen, _mask: 0, first=0)
    assert env.schedule is not None
    assert reward == measure(env.schedule)["utilisation_makespan"]
    own = SchedulingEnv(LOG, length=50, reward=lambda schedule: float(schedule.queue_max or 0))
    assert run_episode(own, lambda _seen, _mask: 0, first=0) == env.schedule.queue_max
    with pytest.raises(UsageError, match="there is no such metric; did you mean 'wait_mean_s'"):
        reward_of("wait_mean")


def test_the_same_seed_gives_the_same_episode_also_among_several() -> None:
    first, second = (SchedulingEnv(LOG, jobs=4, length=30) for _ in range(2))
    same = [env.reset(seed=5)[0] for env in (first, second)]
    np.testing.assert_array_equal(*same)
    several = gymnasium.vector.SyncVectorEnv(
        [lambda: SchedulingEnv(LOG, jobs=4, length=30) for _ in range(3)]
    )
    seen, _ = several.reset(seed=5)
    np.testing.assert_array_equal(seen[0], same[0])
    for _ in range(100):
        seen, *_ = several.step(np.zeros(3, np.int64))
    assert seen.shape == (3, 22)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"jobs": 0}, "use 1 or more"),
        ({"length": 0}, "use 1 or more"),
        ({"reward": "wait"}, "no such metric"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SchedulingEnv(LOG, **wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="first=5000: use 0 to"):
        SchedulingEnv(LOG).reset(options={"first": 5000})


@pytest.mark.parametrize("memory", [0, 16 * 2**30])
def test_on_chunks_the_agent_that_takes_the_first_job_is_fcfs(memory: int) -> None:
    machine = Machine(tuple(Host(f"n{place}", 32, memory) for place in range(4)), chunked=True)
    env = SchedulingEnv(LOG, machine=machine, length=200)
    env.reset(options={"first": 0})
    is_over = False
    while not is_over:
        *_, is_over, _, _ = env.step(0)
    assert env.schedule is not None
    expected = run(env.schedule.workload, machine, load_policy("fcfs"), driver="engine")
    assert same_schedule(env.schedule, expected)
