"""EQspatial: every job on a host gets an equal share of its processors, resized as jobs come and
go.

Source: Chiang and Vernon, "Production Job Scheduling for Parallel Shared Memory Systems", IPDPS
2001, section 2.5; exact readings in docs/spec/papers.md 3.5 and 3.7, item 11.  All jobs count as
malleable, from 1 to the processors asked for, and run as fast as they have processors: the policy
sets ``is_malleable``, and the engine applies it to every job.

Where the paper and the specification are silent (``tests/oracle/equispatial.py`` reads it the same
way):

* Ties between hosts go to the first; a job goes to no host with fewer processors than it asks for.
* With more jobs than processors on a host the last ones stand still (suspended, or not yet started)
  and hold their memory.
* Several jobs that are to get all share what leaves one processor to every other job, as equally as
  all jobs otherwise do: so no favoured job has less than its share.  With more jobs than processors
  none has more than the others.
* The extra processors that make a host count as smaller are those that an owed job has beyond its
  share at that moment.  The share is among all jobs that are placed there by then.  Trial runs
  count among the jobs that request processors.
* The processors of a trial run are not shared, neither among the jobs on its host nor with a job
  that waits for memory.
* A trial run goes where the placement rules say, among the hosts with the quantum's memory on which
  every other job keeps one processor.  It takes idle processors if there are enough.  If not, the
  others shrink for it, at once, instead of being suspended, and get their processors back at once
  when it ends, as preempted jobs do (docs/spec/papers.md 3.4); the interval starts again.
* The compensation is summed up while a job waits; its trial run counts neither for that nor for the
  50 hours.
* A division counts, and the interval starts again, even if it changes no job.  A paid debt and the
  end of 50 hours (one microsecond more) are reasons to divide, within the interval.
* On a closed host nothing changes; a job that was placed there and has not started is placed again.

The pass consists of kernels (:mod:`qbatch.planning.kernels.equal_shares`), which the compiled
replay calls too.  This module translates the view for them, and the rows that they write into
actions.  A pass touches only the hosts on which something happens, and then updates what their jobs
have executed and are owed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from qbatch.model.actions import Action, WakeAt
from qbatch.model.job import Job
from qbatch.model.machine import Machine, memory_text
from qbatch.model.reasons import Reason
from qbatch.planning.compiled_policy import actions_of
from qbatch.planning.kernels import equal_shares as shares
from qbatch.planning.kernels.entries import entries_to
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import ACTION, INTERRUPTIONS, NO_JOB, Needs
from qbatch.planning.policy import Compiled, check_single_hosts
from qbatch.planning.view import View

LONG = 50 * 3600 * 1_000_000
"""Executed time after which a job may get all that it asks for, microseconds."""

_kernels = entries_to(shares)


@dataclass
class Shares:
    """The memory of the policy: the waiting and placed jobs, and the hosts
    (:mod:`qbatch.planning.kernels.equal_shares`)."""

    state: shares.SharesState

    def host_of(self, row: int) -> int:
        """Return the host on which a row is placed, -1 if it is not placed or is a trial run."""
        slot = _kernels.slot_of(row, self.state)
        if slot < 0 or self.state.jobs[slot].trial != shares.NO_TRIAL:
            return -1
        host = int(self.state.jobs[slot].host)
        return host if host < len(self.state.hosts) - 1 else -1

    def rows(self) -> dict[int, int]:
        """Return the rows in the table with their hosts; for a waiting row, the number of hosts."""
        state = self.state
        jobs = state.jobs[: state.counts["used"].item(0)]
        return dict(jobs[jobs["row"] != NO_JOB][["row", "host"]].tolist())

    def come(self, job: Job, *, is_new: bool) -> int:
        """Add a waiting job; return its slot."""
        state = self.state
        if state.counts["used"].item(0) == len(state.jobs):
            self.state = state = state._replace(
                jobs=np.concatenate([state.jobs, np.zeros_like(state.jobs)])
            )
        return int(
            _kernels.come(job.row, job.procs, job.memory, int(is_new and job.is_rerunnable), state)
        )


class EquiSpatial:
    """Equal shares of hosts.

    Args:
        interval: the shortest time between two divisions of a host, seconds.
        over50: ``yes``: a job gets all that it asks for after ``LONG``.
        quantum: how long a job without memory may run on arrival, seconds.
        memory: the most memory of that trial run, bytes.
    """

    is_malleable = True
    knows_resources = False

    def __init__(self, name: str, interval: int, over50: str, quantum: int, memory: int) -> None:
        self.name = name
        self._rules = (
            interval * 1_000_000,
            LONG if over50 == "yes" else FOREVER,
            quantum * 1_000_000,
            memory,
        )

    def compiled_on(self, machine: Machine) -> Compiled | None:
        """Return the kernel that makes the same decisions on a machine; None if jobs may span
        hosts."""
        if machine.spans_hosts or machine.chunked:
            return None
        return Compiled(
            shares.decide_shares,
            Needs(gives=INTERRUPTIONS, has_hosts=True, has_timers=True),
            lambda work, machine: shares.new_state(machine, self._rules, slots=len(work)),
        )

    def new_memory(self, machine: Machine) -> Shares:
        """Return the record for a machine before its first event.

        Raises:
            UsageError: a job may span hosts of the machine, or comes in chunks.
        """
        check_single_hosts(machine, self.name, "a job has a share of one host", takes_chunks=False)
        return Shares(shares.new_state(machine, self._rules))

    def decide(self, view: View) -> Iterable[Action]:
        """Place waiting jobs, divide the hosts that are due, and return the changes of
        processors."""
        memory: Shares = view.memory
        self._follow(view, memory)
        at = int(_kernels.share_pass(view.now, memory.state))
        written = np.empty(len(memory.state.jobs), ACTION)
        count = _kernels.write_changes(view.now, memory.state, written)
        actions = actions_of(written[:count], view)
        if at < FOREVER:
            actions.append(WakeAt(at))
        return actions

    def explain(self, view: View, row: int) -> Reason:
        """Return why a waiting job has not begun."""
        job, host = view.jobs[row], view.memory.host_of(row)
        numbers = {"procs": job.procs, "memory": job.memory, "free": view.free_procs}
        if host >= 0:
            name = view.machine.hosts[host].name
            return Reason(
                "processors",
                self.name,
                f"has its place on host {name}, which has no processor for it yet",
                numbers,
            )
        text = (
            f"no open host of {job.procs} processors or more has {memory_text(job.memory)} of "
            "memory free"
        )
        return Reason("memory", self.name, text, numbers)

    def _follow(self, view: View, memory: Shares) -> None:
        """Remove the jobs that have left, and add those that wait."""
        for row in (*view.finished, *view.withdrawn, *view.requeued):
            _kernels.depart(view.now, row, memory.state)
        coming: Iterable[int] = view.arrived
        if view.is_machine_changed or view.requeued:
            if view.is_machine_changed:
                _follow_machine(view, memory)
            there = memory.rows()
            coming = [row for row in view.queue.tolist() if row not in there]
        arrived = set(view.arrived)
        for row in coming:
            memory.come(view.jobs[row], is_new=row in arrived)


def _follow_machine(view: View, memory: Shares) -> None:
    """Follow hosts that closed and opened: a job that has not begun on a closed one is placed
    again.  Jobs that run, or were suspended by another policy, are added.
    """
    hosts, queue = memory.state.hosts, len(view.machine.hosts)
    for host in range(queue):
        if hosts[host].is_closed and host not in view.closed:
            _kernels.touch(view.now, host, memory.state)
            hosts[host].is_due = 1
        hosts[host].is_closed = host in view.closed
    waiting, here = set(view.queue.tolist()), {**view.running, **view.suspended}
    there = memory.rows()
    for row, host in there.items():
        if row not in here and (row not in waiting or host in view.closed):
            _kernels.depart(view.now, row, memory.state)
    for row, run in sorted(here.items()):
        if row not in there:
            slot, procs = (
                memory.come(view.jobs[row], is_new=False),
                run.procs if row in view.running else 0,
            )
            memory.state.jobs[slot].held = run.allocation[0].memory
            _kernels.enter(
                view.now, slot, run.allocation[0].host, procs, shares.NO_TRIAL, memory.state
            )
            memory.state.jobs[slot].had = procs
