"""Group optimisation: medium and long jobs of a time-shared machine are planned together, in an
order found by a search.

Source: the thesis on group optimisation in SCOJO-PECT, sections 6 and 7; exact readings in
docs/spec/papers.md 4.3 to 4.7 and 4.10, rules 8 to 17.  Section 9.5 and Vasupongayya, Chiang and
Massey 2005 for the search without groups (rule 18).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import chain

import msgspec
import numpy as np

from qbatch.model.actions import Action
from qbatch.planning import search as searching
from qbatch.planning.kernels import discrepancy, slices
from qbatch.planning.kernels.entries import entries_to
from qbatch.planning.kernels.types import Int64Array, RecordArray
from qbatch.policies.slice_book import Group
from qbatch.policies.slice_rules import SECOND, SliceRules
from qbatch.policies.slices import SlicePass, SliceScheduler

_kernels = entries_to(slices)

LEAST = 600 * SECOND
"""The shortest run time in a slowdown, microseconds."""

_MOST_WIDE, _LEAST_WIDE = 6, 3


class GroupSize(msgspec.Struct, frozen=True):
    """When a class forms a group, and of how many jobs.

    ``least``: at least this many jobs wait.  ``width``: together they ask for more than this many
    tenths of the machine. ``work``: together they would keep the machine busy for longer than this,
    microseconds.  ``most``: the longest group. A job is *wide and lasting* if it asks for one part
    in ``wide`` of the machine and for ``lasting``; all orders of such jobs are tried first.
    """

    least: int
    width: int
    work: int
    most: int
    wide: int
    lasting: int


class GroupRules(msgspec.Struct, frozen=True):
    """The parameters of one policy of groups.

    ``sizes``: by class.  ``walk``, ``budget``: of the search.  ``selects``: last end, utilisation
    and response choose among the last three orders.  ``shifts``: jobs are tried in holes that are
    slightly too short.  ``is_dynamic``: a job that arrives while a group is carried out may start
    at once.  ``halves``: the search of a group of the longest kind has two parts.  ``tries_wide``,
    ``searches``: the first and the second level of the search.
    """

    sizes: tuple[GroupSize | None, GroupSize, GroupSize]
    walk: str = "ilds"
    budget: int = 10_000
    selects: bool = True
    shifts: bool = True
    is_dynamic: bool = True
    halves: bool = True
    tries_wide: bool = True
    searches: bool = True


def group_sizes(
    least_medium: int = 10, most_medium: int = 20, least_long: int = 5, most_long: int = 30
) -> tuple[None, GroupSize, GroupSize]:
    """Return when the classes form groups (4.3), with the numbers of jobs that a policy names."""
    medium = GroupSize(
        least_medium, 15, 1600 * SECOND, max(most_medium, least_medium), 10, 800 * SECOND
    )
    return (
        None,
        medium,
        GroupSize(least_long, 20, 15_000 * SECOND, max(most_long, least_long), 4, 15_000 * SECOND),
    )


class GroupScheduler(SliceScheduler):
    """Time sharing with groups of medium and of long jobs."""

    def __init__(self, name: str, rules: SliceRules, groups: GroupRules) -> None:
        super().__init__(name, rules)
        self.groups = groups

    def _pass(self, work: SlicePass) -> list[Action]:
        """Make the pass of a slice: form a group if it is time, carry it out (rules 8 and 16)."""
        book, kind = work.book, work.kind
        group = book.groups[kind]
        if group is not None and (group.is_over or not group.rows):
            for row in group.rows:  # those that have not begun wait again
                book.jobs["state"][book.slot_of(row)] = slices.WAITING
            book.groups[kind] = None
        work.resume()
        work.draw()
        if book.groups[kind] is None:
            self._form(work)
        group = book.groups[kind]
        if group is None:
            self.choose(work)
        else:
            work.book_in_order(np.array([book.slot_of(row) for row in group.rows], np.int64))
            if self.groups.is_dynamic and work.view.arrived:
                work.start_arrivals(takes_others=self.rules.is_smart)
            work.backfill(work.waiting(), is_in_order=False)
        if self.rules.is_smart:
            others = (
                each.rows
                for place, each in enumerate(book.groups)
                if each is not None and place != kind
            )
            work.backfill_smartly(np.array(list(chain.from_iterable(others)), np.int64))
        book.drop_begun(work.begun())
        return work.actions()

    def _form(self, work: SlicePass) -> None:
        """Form a group of the waiting jobs of the class, if there are enough, wide and long enough
        in total (4.3, rule 8)."""
        book, size = work.book, self.groups.sizes[work.kind]
        if size is None or book.present[work.kind] < size.least:
            return
        places = work.waiting()
        widths = book.jobs["procs"][places].tolist()
        area = sum(map(int.__mul__, widths, book.jobs["estimate"][places].tolist()))
        if (
            len(places) < size.least
            or 10 * sum(widths) <= size.width * book.procs
            or area <= size.work * book.procs
        ):
            return
        places = places[: size.most]
        order, starts, nodes, pruned = self._searched(work, places, size)
        rows = [int(book.jobs["row"][place]) for place in order]
        finish = _finish(work, order, starts, size.least)
        for place in order:
            book.jobs["state"][place] = slices.PLANNED
        book.groups[work.kind] = Group(rows, finish)
        counts = book.counts
        counts.groups[work.kind] += 1
        counts.grouped[work.kind] += len(rows)
        counts.nodes += nodes
        counts.pruned += pruned

    def _searched(
        self, work: SlicePass, places: Int64Array, size: GroupSize
    ) -> tuple[list[int], list[int], int, int]:
        """Return the jobs of a group (by slot) in the order of the plan, their planned starts, and
        the counters of the search."""
        book, now, base = work.book, work.now, work.profile
        share = self.rules.share(work.kind, now)
        jobs = book.to_search(places)
        rules = searching.SearchRules(
            walk=self.groups.walk, budget=self.groups.budget, share=share, least=LEAST
        )
        line = (
            self._line(now, base, jobs, size, rules, book.procs) if self.groups.tries_wide else []
        )
        first = searching.largest_slowdown_first(now, base, jobs, line, rules)
        if not self.groups.searches:
            starts, _, _ = searching.place_in_order(now, base, jobs, first, rules)
            return [int(places[job]) for job in first], starts.tolist(), 0, 0
        rules = msgspec.structs.replace(rules, shifts=self.groups.shifts)
        middle = (
            (len(first) + 1) // 2 if self.groups.halves and len(first) == size.most else len(first)
        )
        order: list[int] = []
        planned: list[int] = []
        nodes = pruned = 0
        for part in filter(None, (first[:middle], first[middle:])):
            chosen_jobs = jobs[part]
            outcome = searching.search(now, base, chosen_jobs, rules)
            found = (
                searching.chosen(outcome.found, book.procs, now)
                if self.groups.selects
                else outcome.best
            )
            starts, base, _ = searching.place_in_order(now, base, chosen_jobs, found.order, rules)
            order += [part[job] for job in found.order]
            planned += starts.tolist()
            nodes, pruned = nodes + outcome.nodes, pruned + outcome.pruned
        return [int(places[job]) for job in order], planned, nodes, pruned

    def _line(
        self,
        now: int,
        base: Int64Array,
        jobs: RecordArray,
        size: GroupSize,
        rules: searching.SearchRules,
        procs: int,
    ) -> list[int]:
        """Return the wide and lasting jobs, in the best of all their orders; none if they are few
        (rule 10)."""
        is_wide = size.wide * jobs["procs"] >= procs
        wide = np.flatnonzero(is_wide & (jobs["estimate"] >= size.lasting))
        if len(wide) < _LEAST_WIDE:
            return []
        work = jobs["procs"][wide] * jobs["estimate"][wide]
        wide = np.sort(wide[np.argsort(-work, kind="stable")[:_MOST_WIDE]])
        every = msgspec.structs.replace(
            rules, walk="lex", budget=1_000_000, objective=discrepancy.SLOWDOWN_THEN_END
        )
        outcome = searching.search(now, base, jobs[wide], every)
        return [int(wide[job]) for job in outcome.best.order]


def _finish(work: SlicePass, order: list[int], starts: list[int], least: int) -> int:
    """Return the row that ends a group with its own end (rule 17)."""
    book, now = work.book, work.now
    jobs: list[tuple[int, int, int, int, bool]] = []
    for place, start in zip(order, starts, strict=True):
        lasts = max(int(book.jobs["estimate"][place]), slices.SECOND)
        jobs.append(
            (
                start + lasts,
                int(book.jobs["row"][place]),
                start,
                int(book.jobs["procs"][place]),
                True,
            )
        )
    for place in book.places(slices.RUNNING, work.kind).tolist():
        end = now + _kernels.left_of(book.jobs, place, now)
        jobs.append((end, int(book.jobs["row"][place]), now, int(book.jobs["procs"][place]), False))
    jobs.sort()
    finish, ended, most = jobs[-1][1], 0, None
    for end, row, _, _, is_planned in jobs:
        ended += is_planned
        if ended < least:
            continue
        area = sum(procs * max(min(other, end) - start, 0) for other, _, start, procs, _ in jobs)
        used = Fraction(area, book.procs * (end - now))
        if most is None or used > most * Fraction(95, 100):
            most, finish = used if most is None else max(used, most), row
        elif used > Fraction(3, 4):
            finish = row
    return finish


class BottomLine(SliceScheduler):
    """Time sharing in which a search orders the waiting jobs of a class in every pass, without
    keeping its plan (rule 18)."""

    def __init__(self, name: str, rules: SliceRules, nodes: int, bound: int | None) -> None:
        super().__init__(name, rules)
        self.nodes = nodes
        self.bound = bound

    def choose(self, work: SlicePass) -> None:
        """Book the waiting jobs of the class in the best order found, and start those booked for
        now."""
        places = work.waiting()
        if len(places) > 1:
            places = self._ordered(work, places)
        work.book_in_order(places)

    def _ordered(self, work: SlicePass, places: Int64Array) -> Int64Array:
        jobs = work.book.to_search(places)
        ages, estimates = (work.now - jobs["submit"]).tolist(), jobs["estimate"].tolist()
        both = zip(ages, estimates, strict=True)
        slowdowns = [Fraction(age + estimate, max(estimate, 60 * SECOND)) for age, estimate in both]
        first = sorted(range(len(places)), key=slowdowns.__getitem__, reverse=True)
        rules = searching.SearchRules(
            walk="dds",
            budget=self.nodes,
            counts_placements=True,
            objective=discrepancy.EXCESS,
            least=LEAST,
            cuts=False,
            bound=max(ages) if self.bound is None else self.bound,
        )
        outcome = searching.search(work.now, work.profile, jobs[first], rules)
        work.book.counts.nodes += outcome.nodes
        return np.array([places[first[job]] for job in outcome.best.order], np.int64)
