"""The use of accounts and users, how it decays, and the fair-share factors that come of it
(docs/spec/production.md 2.2 to 2.4; Slurm's ``priority_multifactor.c`` and ``fair_tree.c``).

Use is processor-seconds, or what a partition bills, in the order in which Slurm adds it up: the
floats of the page, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

import msgspec

from qbatch.model.site import CLASSIC, OF_PARENT, ROOT, FairShare, Site

_LEAST = 2.2250738585072014e-308
"""The smallest factor of a decay: Slurm's ``DBL_MIN``."""

_LN_2 = 0.6931471805599453
_TERMS = 18
_MOST_HALVINGS = 1075

NO_NODE = -1


def powint(base: float, exponent: int) -> float:
    """Return a power with a whole exponent of at least 0, by squaring: the same bits on every
    machine."""
    result = 1.0
    while exponent > 0:
        if exponent & 1:
            result = result * base
        base = base * base
        exponent >>= 1
    return result


def exp2neg(x: float) -> float:
    """Return 2 to the power of ``-x``, for ``x`` of at least 0 (relative error below 5e-16)."""
    if not x < _MOST_HALVINGS:
        return 0.0
    whole = int(x)
    y = (x - whole) * _LN_2
    s = 1.0
    for k in range(_TERMS, 0, -1):
        s = 1.0 - (y / k) * s
    return s * 2.0**-whole


class Node(NamedTuple):
    """An account, or a user in an account: its place in the tree.

    ``shares``: ``OF_PARENT``: it has those of the account above.  ``children``: accounts and users
    below, in order of definition.
    """

    parent: int
    shares: int
    is_user: bool
    children: list[int]


class ShareTree:
    """The accounts and users of a site as nodes: the root is number 0, then come the accounts and
    then the associations (users in accounts), in order of definition."""

    def __init__(self, site: Site) -> None:
        accounts = [each for each in site.accounts if each.name != ROOT]
        self.nodes = [Node(NO_NODE, 1, False, [])]
        numbers = {ROOT: 0}
        for account in accounts:
            numbers[account.name] = self._add(numbers[account.parent], account.shares, False)
        self._first_user = len(self.nodes)
        self.account_nodes = [numbers[account.name] for account in site.accounts]
        for each in site.associations:
            account = site.accounts[each.account]
            self._add(numbers[account.name], account.users[each.user].shares, True)
        self.users = len(site.associations)
        self._sharing = [self._above(node) for node in range(len(self.nodes))]
        level = [0] * len(self.nodes)
        for number, node in enumerate(self.nodes):
            if number and node.shares != OF_PARENT:
                level[self._sharing[number]] += node.shares
        self._level = [level[above] if number else 0 for number, above in enumerate(self._sharing)]

    def _add(self, parent: int, shares: int, is_user: bool) -> int:
        number = len(self.nodes)
        self.nodes.append(Node(parent, shares, is_user, []))
        self.nodes[parent].children.append(number)
        return number

    def _above(self, number: int) -> int:
        """Return the nearest node above that has shares of its own (the root for the root)."""
        above = self.nodes[number].parent
        while above > 0 and self.nodes[above].shares == OF_PARENT:
            above = self.nodes[above].parent
        return max(above, 0)

    def node_of(self, association: int) -> int:
        """Return the node of a user in an account."""
        return self._first_user + association

    def path(self, association: int) -> list[int]:
        """Return the node of an association and all above it."""
        found, number = [], self.node_of(association)
        while number != NO_NODE:
            found.append(number)
            number = self.nodes[number].parent
        return found

    def factors(self, usage: Sequence[float], kind: str, dampening: int) -> list[float]:
        """Return the fair-share factor of each association, 0 to 1; ``usage``: by node."""
        if kind == CLASSIC:
            shares, effective = self.normal_shares(), self.effective_usage(usage)
            return [
                self._classic(self.node_of(user), shares, effective, dampening)
                for user in range(self.users)
            ]
        found = [0.0] * self.users
        self._rank(usage, self.level_values(usage), found)
        return found

    def level_values(self, usage: Sequence[float]) -> list[float]:
        """Return the level value of each node: its part of the shares next to it, divided by its
        part of their use (infinity: it used nothing, or has the shares of its account)."""
        found = [inf] * len(self.nodes)
        for number, node in enumerate(self.nodes):
            if number == 0:
                continue
            above = usage[self._sharing[number]]
            used = usage[number] / above if above else 0.0
            if node.shares == OF_PARENT and node.is_user:
                found[number] = inf
            elif node.shares == OF_PARENT or not node.shares or not self._level[number]:
                found[number] = 0.0 if node.shares != OF_PARENT else inf
            elif used:
                found[number] = (node.shares / self._level[number]) / used
        return found

    def _rank(self, usage: Sequence[float], values: Sequence[float], found: list[float]) -> None:
        """Write the factors of the Fair Tree: users are ranked in a walk through the tree, brothers
        in order of their level values, users before accounts.

        A node that ties with the one before it keeps that rank.  Only the first child of an account
        inherits a tie.
        """
        users = max(self.users, 1)
        rank = following = self.users
        # A stack of (children in order, next of them, whether the first is tied).
        stack = [(self._sorted(0, values), 0, False)]
        while stack:
            children, place, is_first_tied = stack.pop()
            if place == len(children):
                continue
            number = children[place]
            if place == 0:
                is_tied = is_first_tied
            else:
                is_tied = values[number] == values[children[place - 1]]
            stack.append((children, place + 1, is_first_tied))
            if self.nodes[number].is_user:
                if not is_tied:
                    rank = following
                found[number - self._first_user] = rank / users
                following -= 1
            else:
                stack.append((self._sorted(number, values), 0, is_tied))

    def _sorted(self, number: int, values: Sequence[float]) -> list[int]:
        """Return the children of a node, the greatest level value first, users before accounts."""
        return sorted(
            self.nodes[number].children,
            key=lambda child: (-values[child], not self.nodes[child].is_user),
        )

    def normal_shares(self) -> list[float]:
        """Return the part of the whole machine that each node has by its shares."""
        found = [1.0] * len(self.nodes)
        for number in range(1, len(self.nodes)):
            found[number] = self._normal(number)
        return found

    def _normal(self, number: int) -> float:
        """Return the product of the parts on the way from a node up to below the root."""
        share = 1.0
        while number > 0:
            node = self.nodes[number]
            if node.shares != OF_PARENT:
                level = self._level[number]
                share = share * (node.shares / level) if level else 0.0
            number = node.parent
        return share

    def effective_usage(self, usage: Sequence[float]) -> list[float]:
        """Return the effective use of each node: its own part, and of what its account used beyond
        that as much as its shares say."""
        found, whole = [1.0] * len(self.nodes), usage[0]
        for number in range(1, len(self.nodes)):
            node, above = self.nodes[number], self._sharing[number]
            own = min(usage[number] / whole, 1.0) if whole else 0.0
            if above == 0:
                found[number] = own
            elif node.shares == OF_PARENT or not self._level[number]:
                found[number] = found[above]
            else:
                found[number] = own + (found[above] - own) * (node.shares / self._level[number])
        return found

    def _classic(
        self, number: int, shares: Sequence[float], effective: Sequence[float], dampening: int
    ) -> float:
        if self.nodes[number].shares == OF_PARENT:
            number = self._sharing[number]
        share = shares[number]
        return 0.0 if share <= 0 else exp2neg((effective[number] / share) / dampening)


class Use(NamedTuple):
    """What a job uses while it runs: by an association, of a QOS (-1: none), so much each second
    (``billing``, multiplied by the factor of the QOS), since an instant in seconds."""

    association: int
    qos: int
    billing: float
    start: int


class Usage(msgspec.Struct):
    """The use of each node of a :class:`ShareTree` and of each QOS, in billed seconds.

    ``last``: the second of the last tick, -1 before the first.
    """

    of_nodes: list[float]
    of_qos: list[float]
    last: int = -1

    def tick(
        self,
        tree: ShareTree,
        rules: FairShare,
        running: Iterable[Use],
        now: int,
        no_decay: Sequence[bool] = (),
    ) -> None:
        """Let all use decay, and add what running jobs used since the last tick
        (docs/spec/production.md 2.2); ``now``: in seconds; ``no_decay``: by QOS."""
        decay = decay_of(rules)
        if self.last >= 0:
            factor = max(powint(decay, now - self.last), _LEAST)
            self.of_nodes = [used * factor for used in self.of_nodes]
            kept = no_decay or [False] * len(self.of_qos)
            self.of_qos = [
                used if keeps else used * factor
                for used, keeps in zip(self.of_qos, kept, strict=True)
            ]
        for use in running:
            self.add(tree, use, now, decay)
        self.last = now

    def add(self, tree: ShareTree, use: Use, now: int, decay: float) -> None:
        """Add what one job used since the last tick or its start.  The whole span decays, as in
        Slurm."""
        span = max(now - max(use.start, self.last), 0)
        if span == 0:
            return
        amount = (span * powint(decay, span)) * use.billing
        if use.association >= 0:
            for node in tree.path(use.association):
                self.of_nodes[node] += amount
        if use.qos >= 0:
            self.of_qos[use.qos] += amount


def decay_of(rules: FairShare) -> float:
    """Return by which factor use decays in a second."""
    return 1.0 - (0.693 / rules.half_life) if rules.half_life else 1.0


def new_usage(tree: ShareTree, site: Site) -> Usage:
    """Return a record without any use."""
    return Usage([0.0] * len(tree.nodes), [0.0] * len(site.qos))
