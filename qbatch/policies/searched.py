"""List schedulers that put their queue in order by a search: FCFS, EASY and the hybrid, apart from
the order.

The search places the jobs at the head of the queue one after another on the processors that the
running jobs leave, in many orders near the policy's own (:mod:`qbatch.planning.search`).  The pass
follows the order with the least sum of bounded slowdowns. Only the pass looks at hosts and memory,
not the search.
"""

from __future__ import annotations

import numpy as np

from qbatch.model.actions import Start
from qbatch.model.reasons import Reason
from qbatch.planning import search as searching
from qbatch.planning.kernels import profile as profiles
from qbatch.planning.kernels.entries import entries_to
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.view import View
from qbatch.policies.backfill import Backfill

_profiles = entries_to(profiles)

FIRST = 20
"""The number of jobs of the queue that are searched."""

LEAST = 10_000_000
"""The shortest run time in a slowdown, microseconds (Feitelson 2001, bounded slowdown)."""


class SearchedBackfill:
    """A list scheduler that scans the queue in an order found by a search.

    Args:
        inner: the policy that gives the first order of the search and makes the pass.
        walk: of :data:`qbatch.planning.search.WALKS`.
        budget: the number of complete orders and cuts that ends a search.
    """

    def __init__(self, name: str, inner: Backfill, walk: str, budget: int) -> None:
        self.name = name
        self.inner = inner
        self.rules = searching.SearchRules(walk=walk, budget=budget, least=LEAST)

    def decide(self, view: View) -> list[Start]:
        """Make one pass."""
        if len(view.queue) == 0 or max(view.free) == 0:
            return []
        order = self.inner.in_order(view)
        head = order[:FIRST]
        columns = view.columns
        jobs = searching.jobs_to_search(
            columns.procs[head], columns.estimate[head], columns.submit[head], 1
        )
        ends, amounts, count = view.expected_ends()
        base: Int64Array = _profiles.new_profile(view.free_procs, view.now, 2 * count + 16)
        for end, procs in zip(ends[:count].tolist(), amounts[:count].tolist(), strict=True):
            _profiles.add(base, end, FOREVER, procs)
        fits = jobs["procs"] <= base[1, int(base[0, 0])]
        if len(head) > 1 and fits.all():
            found = searching.search(view.now, base, jobs, self.rules).best.order
            order = np.concatenate([head[list(found)], order[FIRST:]])
        return self.inner.pass_in(view, order)[0]

    def explain(self, view: View, row: int) -> Reason:
        """Return why a waiting job did not start in the pass just over."""
        job = view.jobs[row]
        numbers = {"procs": job.procs, "free": view.free_procs}
        if job.procs > view.free_procs:
            text = f"needs {job.procs} processors, {view.free_procs} are free"
            return Reason("processors", self.name, text, numbers)
        text = "in the order that the search has found it starts later, or a reservation delays it"
        return Reason("order", self.name, text, numbers)
