"""Questions of an engine to its policy outside a pass: why a job waits, the outcome of another job, the price of one.

A question changes nothing.  An error inside a policy is reported with its place in the policy's code.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Set
from typing import Any

from qbatch.engine import audit, checks, plain
from qbatch.engine.admission import Admission
from qbatch.engine.cluster import Cluster, ClusterWindow
from qbatch.engine.states import STATES, State
from qbatch.model.actions import Action, Allocation, parts_of
from qbatch.model.errors import DecisionError, QbatchError
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.phase import Phase
from qbatch.model.quote import Quote
from qbatch.model.reasons import Reason
from qbatch.planning.policy import Charging, Explaining, Phased, Policy, Queueing, Quoting, name_of
from qbatch.planning.view import View


class AsksPolicy:
    """The part of an engine that asks its policy and changes nothing."""

    machine: Machine
    policy: Policy
    now: int | None
    _cluster: Cluster
    _window: ClusterWindow
    _memory: Any
    _admission: Admission
    _open_hosts: Admission
    _watch: audit.Watch | None

    def view(self) -> View:
        """Return the current state, as a policy would see it if nothing happened."""
        return View(self._window, self.now or 0, self.machine, self._cluster.waiting.rows, self._memory)

    def explain(self, row: int) -> Reason:
        """Return why a waiting job waits, by the state after the last pass; under time sharing also why a job is suspended."""
        state = STATES[self._cluster.codes[row]]
        is_own = state is State.SUSPENDED and row not in self._cluster.left_behind
        is_standing = is_own and isinstance(self.policy, Phased)
        if state is not State.QUEUED and not is_standing:
            return Reason("not-waiting", "engine", f"the job is {state.value}")
        if row in self._cluster.parked:
            return self._parked_reason(row)
        view = self.view()
        if isinstance(self.policy, Explaining):
            said = self._ask(lambda: self.policy.explain(view, row))  # type: ignore[attr-defined]
            return checks.answer(said, Reason, name_of(self.policy))
        job, who = view.jobs[row], name_of(self.policy)
        if job.procs > view.free_procs:
            text = f"needs {job.procs} processors, {view.free_procs} are free"
            return Reason("processors", who, text, {"procs": job.procs, "free": view.free_procs})
        return Reason("policy", who, f"{view.free_procs} processors are free, but {who} did not start it")

    def quote(self, job: Job, at: int | None = None) -> Quote | None:
        """Return the outcome of a job that arrived at ``at`` (default: now), or None if the policy cannot predict it.

        The question leaves no trace.  For a job that only closed hosts could hold the answer is None.

        Raises:
            DecisionError: the policy failed, or changed its memory (seen by an audited engine).
        """
        reason = self._admission.refusal(job)
        if reason is not None:
            return Quote(reason)
        if not isinstance(self.policy, Quoting) or (self._cluster.closed and self._open_hosts.refusal(job) is not None):
            return None
        policy, own = self.policy, type(self.policy).__module__
        view = View(self._window, max(self.now or 0, at or 0), self.machine, self._cluster.waiting.rows, self._memory)
        before = plain.encode(self._memory, own) if self._watch is not None else b""
        quote = checks.answer(self._ask(lambda: policy.quote(view, job)), Quote, name_of(policy))
        if self._watch is not None and plain.encode(self._memory, own) != before:
            raise DecisionError(f"policy {name_of(policy)} changed its memory when it was asked for a quote")
        return quote

    def phase(self) -> Phase | None:
        """Return the current phase, or None: the policy does not divide the time."""
        if not isinstance(self.policy, Phased):
            return None
        policy, view = self.policy, self.view()
        return checks.answer(self._ask(lambda: policy.phase(view)), Phase, name_of(policy))

    def host_queues(self) -> list[list[int]] | None:
        """Return by host the rows that wait for it, in order, or None: the policy keeps no host queues."""
        if not isinstance(self.policy, Queueing):
            return None
        policy, view = self.policy, self.view()
        return checks.answer(self._ask(lambda: policy.host_queues(view)), list, name_of(policy))

    def price_of(self, row: int) -> int | None:
        """Return the price of an accepted job in millionths of a processor-hour, or None: the policy has none."""
        if not isinstance(self.policy, Charging):
            return None
        policy, view = self.policy, self.view()
        return checks.answer(self._ask(lambda: policy.price(view, row)), int | None, name_of(policy))  # type: ignore[arg-type]

    def room_for(self, row: int, hosts: Set[int] | None = None) -> Allocation:
        """Return the allocation with which a waiting job could start now (on these hosts, if given); empty if there is none.

        Resources that a suspended job had are not free: the policy counts on them.
        """
        cluster = self._cluster
        free, free_memory = list(cluster.free), list(cluster.free_memory)
        for run in cluster.suspended.values():
            for host, width, _ in parts_of(run.allocation):
                free[host] = max(free[host] - width, 0)
        if hosts is not None:
            free = [amount if host in hosts else 0 for host, amount in enumerate(free)]
        if row in cluster.parked:
            return ()
        return cluster.kind.allocation(cluster.machine, free, free_memory, cluster.job(row), cluster.free_resources)

    def _parked_reason(self, row: int) -> Reason:
        closed = sorted(self._cluster.closed)
        names = ", ".join(self.machine.hosts[host].name for host in closed)
        why = self._open_hosts.refusal(self._cluster.job(row))
        text = f"the open hosts could never hold it: {why.text if why else 'none is open'}; closed: {names}"
        return Reason("hosts-closed", "engine", text, {**(why.numbers if why else {}), "closed": len(closed)})

    def _ask(self, question: Callable[[], Any]) -> Any:
        """Ask the policy; an error inside it is reported as the policy's, with its place."""
        try:
            return question()
        except QbatchError:
            raise
        except (Exception, SystemExit) as error:
            raise self._defect(error) from error

    def _defect(self, error: BaseException) -> DecisionError:
        place = traceback.extract_tb(error.__traceback__)[-1]
        when = "before the first event" if self.now is None else f"at {self.now / 1e6:.15g} s"
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return DecisionError(f"policy {name_of(self.policy)} failed {when}, {place.filename}:{place.lineno}: {text}")

    def _decisions(self, view: View) -> list[Action]:
        """Return all decisions of the policy, before any of them changes the state that it was looking at."""
        try:
            decisions = list(self.policy.decide(view))
        except QbatchError:
            raise
        except (Exception, SystemExit) as error:
            raise self._defect(error) from error
        for action in decisions:
            if type(action) not in checks.CHECKS:
                raise DecisionError(
                    f"policy {name_of(self.policy)} gave {action!r}, which is not an action of qbatch.model.actions"
                )
        return decisions
