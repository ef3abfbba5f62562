"""The plan of a sweep: the grid with its logs read, its machines known and its policies named, and
its cases in order.

Errors that can be known in advance are reported here, before the long work.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from qbatch.model.errors import InputError, QbatchError, UsageError
from qbatch.model.machine import Machine, one_host
from qbatch.policies.registry import canonical_text, load_policy
from qbatch.sweeps.code import digest_of_policy, policy_by_digest, program_digest
from qbatch.sweeps.executors import Place, each_outcome
from qbatch.sweeps.grid import NONE, OF_LOG, RESAMPLES, Case, Context, Grid
from qbatch.workloads.estimates import read_estimates
from qbatch.workloads.generate import is_model, read_model
from qbatch.workloads.left_out_in_file import left_out_in
from qbatch.workloads.machines import load_machine
from qbatch.workloads.resource_rows import ResourceRows, kinds_in, read_resources
from qbatch.workloads.source import STANDARD_INPUT, LogFile

if TYPE_CHECKING:
    pass

_KEY_SCHEMA = 1


@dataclass(frozen=True)
class SweepPlan:
    """A grid that can run.

    ``log_digests``: the SHA-256 of each stored log, None for one that a model generates.
    ``side_digests``: that of the side file of each log; empty without side files.
    ``machines``: None for the log's own.  ``policy_digests``: hashes of source outside of qbatch,
    by the policies' names.
    """

    grid: Grid
    log_digests: tuple[str | None, ...]
    side_digests: tuple[str, ...]
    machines: tuple[Machine | None, ...]
    policy_digests: dict[str, str]

    def context(self) -> Context:
        """Read the logs and return the shared data of all runs.

        Raises:
            InputError: a log cannot be used, or has changed since the plan was made.
        """
        from qbatch.workloads import read_log  # its compiled parser takes long to load

        grid, logs = self.grid, []
        for text, digest in zip(grid.log, self.log_digests, strict=True):
            log = None if digest is None else read_log(text, lenient=grid.lenient)
            if log is not None and log.sha256 != digest:
                raise InputError(f"{text}: changes while it is read; copy it first")
            logs.append(log)
        rows: list[ResourceRows | None] = [None] * len(logs)
        for place, (path, side) in enumerate(zip(grid.resources, self.side_digests, strict=True)):
            log = logs[place]
            if log is not None:
                rows[place] = found = read_resources(path, log)
                if found.sha256 != side:
                    raise InputError(f"{path}: changes while it is read; copy it first")
        policies = dict(self.policy_digests)
        return Context(grid, tuple(logs), tuple(rows), self.machines, self.inputs, policies)

    @cached_property
    def log_names(self) -> tuple[str, ...]:
        """The names of the logs in the table: the file names without folder and suffix, if these
        are distinct."""
        short = list(self.grid.log)
        for place, digest in enumerate(self.log_digests):
            if digest is not None:
                short[place] = os.path.basename(short[place])
                for ending in (".gz", ".xz", ".swf", ".txt"):
                    short[place] = short[place].removesuffix(ending)
        return tuple(
            name if short.count(name) == 1 else text
            for name, text in zip(short, self.grid.log, strict=True)
        )

    @cached_property
    def _is_drawn(self) -> dict[str, bool]:
        return {text: read_estimates(text).is_drawn for text in self.grid.estimates}

    def seeds_of(self, log: int, resample: str, estimates: str) -> tuple[int | None, ...]:
        """Return the seeds of a combination; only None if nothing is drawn."""
        is_drawn = self.log_digests[log] is None or resample != NONE or self._is_drawn[estimates]
        return self.grid.seed if is_drawn else (None,)

    def cases(self) -> Iterator[Case]:
        """Yield all cases, policies varying fastest, so that those of one workload follow each
        other."""
        grid = self.grid
        places = product(*(range(len(axis)) for axis in (grid.log, grid.machine, grid.window)))
        for (log, machine, window), resample, load, estimates in product(
            places, grid.resample, grid.load, grid.estimates
        ):
            for seed in self.seeds_of(log, resample, estimates):
                for policy in grid.policy:
                    yield Case(log, machine, window, resample, load, estimates, seed, policy)

    def __len__(self) -> int:
        grid = self.grid
        others = math.prod(
            len(axis) for axis in (grid.machine, grid.window, grid.load, grid.policy)
        )
        axes = product(range(len(grid.log)), grid.resample, grid.estimates)
        return others * sum(len(self.seeds_of(*one)) for one in axes)

    def row(self, case: Case) -> dict[str, Any]:
        """Return the axes of a case as in the grid."""
        grid = self.grid
        return {
            "log": self.log_names[case.log],
            "machine": grid.machine[case.machine],
            "window": grid.window[case.window],
            "resample": case.resample,
            "load": case.load,
            "estimates": case.estimates,
            "seed": case.seed,
            "policy": case.policy,
        }

    def words(self, case: Case) -> str:
        """Return a case in words: the policy, and the values of the varying axes."""
        row = self.row(case)
        varying = [
            f"{axis} {row[axis]}"
            for axis in self.grid.varying
            if axis != "policy" and row[axis] is not None
        ]
        return ", ".join([case.policy, *varying])

    @cached_property
    def inputs(self) -> str:
        """A hash of all that the runs of the plan depend on: two plans with the same hash have the
        same keys."""
        machines = [None if machine is None else machine.digest for machine in self.machines]
        facts = [
            msgspec.to_builtins(self.grid),
            self.log_digests,
            self.side_digests,
            machines,
            sorted(self.policy_digests.items()),
        ]
        return hashlib.sha256(self._shared + msgspec.json.encode(facts)).hexdigest()

    @cached_property
    def _shared(self) -> bytes:
        grid = self.grid
        options = [grid.first, grid.warmup, grid.kill, grid.closed, grid.audit, grid.lenient]
        return msgspec.json.encode([_KEY_SCHEMA, program_digest(), options])

    def key_of(self, case: Case) -> str:
        """Return the hash of everything that the run of a case depends on."""
        grid, log, machine = self.grid, self.log_digests[case.log], self.machines[case.machine]
        facts = [
            grid.log[case.log] if log is None else log,
            None if machine is None else machine.digest,
            grid.window[case.window],
            case.resample,
            case.load,
            case.estimates,
            case.seed,
            case.policy,
            self.policy_digests[case.policy],
            *self.side_digests[case.log : case.log + 1],
        ]
        return hashlib.sha256(self._shared + msgspec.json.encode(facts)).hexdigest()


def plan_of(grid: Grid) -> SweepPlan:
    """Read the logs and machines of a grid and check every value of it.

    Raises:
        UsageError: a value is unknown, or there are several seeds although nothing is drawn.
        InputError: a log or a machine cannot be used.
    """
    names, digests = [], {}
    for text in grid.policy:
        name, digest = _policy(text)
        if name in digests:
            raise UsageError(f"policy: {name} occurs twice; name each policy once")
        names.append(name)
        digests[name] = digest
    estimates = tuple(read_estimates(text).name for text in grid.estimates)
    for how in grid.resample:
        if how not in RESAMPLES:
            raise UsageError(f"resample: {how!r} is none of {', '.join(RESAMPLES)}")
    digests_of_logs = tuple(_digest_of_log(text) for text in grid.log)
    machines = tuple(_machine(text) for text in grid.machine)
    grid = msgspec.structs.replace(grid, estimates=estimates, policy=tuple(names))
    for text, digest_of_log in zip(grid.log, digests_of_logs, strict=True):
        if grid.resources and digest_of_log is None:
            raise UsageError(
                f"resources: a model generates the log {text}, which has no side file; leave one out"
            )
    sides = tuple(stored_digest(path) for path in grid.resources)
    plan = SweepPlan(grid, digests_of_logs, sides, machines, digests)
    axes = product(range(len(grid.log)), grid.resample, grid.estimates)
    if len(grid.seed) > 1 and not any(len(plan.seeds_of(*one)) > 1 for one in axes):
        raise UsageError(
            f"seed: {len(grid.seed)} seeds, but nothing is drawn, so every seed gives the same "
            "run; draw estimates (f:2), "
            "resample weeks or users, or let a model generate the log"
        )
    return plan


def _policy(text: str) -> tuple[str, str]:
    """Return the name of a policy, and the hash of its source if it is a user's own; its name is
    then its text."""
    name = canonical_text(text)
    if name is not None:
        return name, ""
    # The policy may now import more than this process has read.
    return text, digest_of_policy(policy_by_digest(text, digest_of_policy(load_policy(text))))


def stored_digest(path: str) -> str:
    """Return the SHA-256 of the stored bytes of a log.

    Raises:
        InputError: it cannot be read.
    """
    if path == STANDARD_INPUT:
        raise UsageError("log -: a sweep reads its logs again when it resumes; name a file")
    log = LogFile(path)
    for _ in log.chunks():
        pass
    return log.sha256


def _digest_of_log(text: str) -> str | None:
    """Return the hash of a stored log; None for one that a model generates."""
    if is_model(text) and not os.path.exists(text):
        read_model(text)
        return None
    return stored_digest(text)


def _machine(text: str) -> Machine | None:
    """Return the machine of a file, one with a number of processors, or None for that of each
    log."""
    if text == OF_LOG:
        return None
    if text.isdecimal() and text.isascii():
        if not 1 <= int(text) <= 10**9:
            raise UsageError(f"machine: {text} is not a number of processors; use 1 to 1000000000")
        return one_host(int(text))
    return load_machine(text)


def check(plan: SweepPlan, context: Context, place: Place) -> None:
    """Prepare every log on every machine in every window, and try each policy with a few jobs of
    each.

    A user's own policy is tried where its runs will be made: one that ends its process does not end
    this one.

    Raises:
        QbatchError: a case fails; the message names it and the reason.
    """
    # The simulation takes long to load.
    from qbatch.sweeps.run import log_of, machine_of, try_run, workload_of

    def prepared(case: Case) -> None:
        log = log_of(context, case)
        workload_of(context, case, log, machine_of(context, case, log))

    grid = plan.grid
    tried: dict[tuple[int, int, str], Case] = {}
    places = (range(len(axis)) for axis in (grid.log, grid.machine, grid.window))
    for (log, machine, window), resample in product(product(*places), grid.resample):
        seed = plan.seeds_of(log, resample, grid.estimates[-1])[0]
        for estimates in grid.estimates if resample == grid.resample[0] else grid.estimates[:1]:
            case = Case(
                log, machine, window, resample, grid.load[0], estimates, seed, grid.policy[0]
            )
            _at(plan, case, prepared)
        for policy in grid.policy:
            if (log, machine, policy) not in tried:
                tried[log, machine, policy] = trial = msgspec.structs.replace(case, policy=policy)
                if not plan.policy_digests[policy]:
                    _at(plan, trial, lambda case: try_run(context, case))
    own = [case for case in tried.values() if plan.policy_digests[case.policy]]
    for outcome in each_outcome(try_run, own, place, context) if own else ():
        if outcome.error is not None:
            raise _failure(plan, outcome.case, outcome.error)


def _at(plan: SweepPlan, case: Case, work: Any) -> None:
    """Prepare a case; if that fails, name its place in the grid."""
    try:
        work(case)
    except QbatchError as error:
        raise type(error)(f"{plan.words(case)}: {error}") from error
    except Exception as error:
        raise _failure(plan, case, " ".join(f"{type(error).__name__}: {error}".split())) from error


def _failure(plan: SweepPlan, case: Case, text: str) -> QbatchError:
    return QbatchError(f"{plan.words(case)}: fails with {text}; repair the policy, or leave it out")


def log_facts(plan: SweepPlan) -> list[dict[str, Any]]:
    """Return the facts about the logs for the record of a sweep."""
    facts: list[dict[str, Any]] = [
        {
            "name": name,
            "path": None if digest is None else str(Path(text).resolve()),
            "sha256": digest,
            "left_out": [] if digest is None else msgspec.to_builtins([*left_out_in(text)]),
        }
        for name, text, digest in zip(plan.log_names, plan.grid.log, plan.log_digests, strict=True)
    ]
    for one, path, side in zip(facts, plan.grid.resources, plan.side_digests, strict=False):
        one["resources"] = {
            "path": str(Path(path).resolve()),
            "sha256": side,
            "kinds": kinds_in(path),
        }
    return facts


def check_logs(plan: SweepPlan, before: list[dict[str, Any]], where: str) -> None:
    """Refuse to resume with a log or a side file that has changed.

    Raises:
        InputError: one has; the message names it.
    """
    known = {each.get("name"): each for each in before}
    for each in log_facts(plan):
        earlier = known.get(each["name"], each)
        for now, then in (
            (each, earlier),
            (each.get("resources") or {}, earlier.get("resources") or {}),
        ):
            if now.get("sha256") != then.get("sha256"):
                raise InputError(
                    f"{now.get('path') or then.get('path')}: has changed since the runs in {where} "
                    f"were made (sha256 {str(then.get('sha256'))[:12]} then, "
                    f"{str(now.get('sha256'))[:12]} now); name another --out, or give the log "
                    "another name"
                )
