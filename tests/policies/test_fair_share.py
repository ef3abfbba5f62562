"""Fair share: the worked cases of docs/spec/production.md, section 10, and a naive oracle."""

from __future__ import annotations

import random
from math import inf

import pytest

from qbatch.model.site import OF_PARENT, Account, FairShare, Site, UserShare
from qbatch.policies.fair_share import ShareTree, Use, decay_of, exp2neg, new_usage, powint
from tests.harness import size

Child = tuple[str, int | str]


def accounts_of(*rows: tuple[str, str, int, dict[str, int]]) -> Site:
    """Return a site with accounts: name, parent, shares, and the shares of its users."""
    return Site(
        accounts=tuple(
            Account(
                name, parent, shares, tuple(UserShare(user, many) for user, many in users.items())
            )
            for name, parent, shares, users in rows
        )
    )


def used(tree: ShareTree, amounts: list[float], beside: float = 0.0) -> list[float]:
    """Return the use by node of amounts by association; ``beside``: more of the root."""
    found = [0.0] * len(tree.nodes)
    for association, amount in enumerate(amounts):
        for node in tree.path(association):
            found[node] += amount
    found[0] += beside
    return found


def test_use_decays_and_running_jobs_are_added() -> None:
    """Worked case 1."""
    rules = FairShare(half_life=604_800)
    assert decay_of(rules) == 0.9999988541666667
    assert powint(decay_of(rules), 300) == pytest.approx(0.9996563088, abs=1e-10)
    site = accounts_of(("a", "root", 1, {"u": 1}))
    tree = ShareTree(site)
    usage = new_usage(tree, site)
    usage.of_nodes, usage.last = [1e6] * 3, 0
    usage.tick(tree, rules, [Use(0, -1, 10.0, 0)], 300)
    assert usage.of_nodes == pytest.approx([1002655.27781] * 3, abs=1e-5)
    # A job that started after the last tick counts from its start; what had no use decays alone.
    usage.tick(tree, rules, [Use(0, -1, 10.0, 500)], 600)
    factor = powint(decay_of(rules), 300)
    more = (100 * powint(decay_of(rules), 100)) * 10.0
    assert usage.of_nodes[0] == 1002655.2778050258 * factor + more


def test_the_older_formula() -> None:
    """Worked case 2."""
    site = accounts_of(
        ("A", "root", 40, {}),
        ("B", "A", 30, {"u1": 1}),
        ("C", "A", 10, {"u2": 1, "u3": 1}),
        ("D", "root", 60, {}),
        ("E", "D", 25, {"u4": 1}),
        ("F", "D", 35, {"u5": 1}),
    )
    tree = ShareTree(site)
    usage = used(tree, [20, 25, 0, 25, 0], beside=30)
    effective = tree.effective_usage(usage)
    assert effective[1:] == pytest.approx(
        [0.45, 0.3875, 0.3, 0.25, 0.25, 0.14583, 0.3875, 0.275, 0.15, 0.25, 0.14583], abs=1e-5
    )
    assert tree.factors(usage, "classic", 1) == pytest.approx(
        [0.408479, 0.022097, 0.125, 0.5, 0.749154], abs=1e-6
    )


def test_the_fair_tree_ranks_users_in_a_walk_through_the_accounts() -> None:
    """Worked case 3."""
    site = accounts_of(
        ("A", "root", 40, {"a1": 1, "a2": 1}),
        ("B", "root", 60, {"b1": 3}),
        ("C", "B", 1, {"c1": 1, "c2": 1}),
    )
    tree = ShareTree(site)
    assert tree.factors(used(tree, [500, 100, 300, 100, 0]), "tree", 1) == [0.2, 0.4, 1.0, 0.6, 1.0]


class NaiveTree:
    """The Fair Tree by the text of docs/spec/production.md 2.4, with dictionaries and recursion; a
    child is ``("account", name)`` or ``("user", number)``."""

    def __init__(self, site: Site, amounts: list[float]) -> None:
        self.parent = {each.name: each.parent for each in site.accounts}
        self.shares = {each.name: each.shares for each in site.accounts}
        users = [(each.name, user.shares) for each in site.accounts for user in each.users]
        self.account = [name for name, _ in users]
        self.raw = {("account", name): raw for name, raw in self.shares.items()}
        self.raw |= {("user", number): raw for number, (_, raw) in enumerate(users)}
        self.amounts, self.rank, self.following = amounts, len(users), len(users)
        self.found = [0.0] * len(users)
        self.visit("root", tied=False)

    def above(self, child: Child) -> str:
        """Return the nearest account above with shares of its own."""
        name = self.account[child[1]] if isinstance(child[1], int) else self.parent[child[1]]
        while name != "root" and self.shares[name] == OF_PARENT:
            name = self.parent[name]
        return name

    def use(self, name: str) -> float:
        """Return the use of an account with all below it."""
        users = [
            amount
            for account, amount in zip(self.account, self.amounts, strict=True)
            if account == name
        ]
        return sum(users) + sum(self.use(each) for each in self.parent if self.parent[each] == name)

    def value(self, child: Child) -> float:
        """Return the level value of a child."""
        raw, above = self.raw[child], self.above(child)
        if raw == OF_PARENT:
            return inf
        level = sum(
            shares
            for other, shares in self.raw.items()
            if shares != OF_PARENT and self.above(other) == above
        )
        if raw == 0 or level == 0:
            return 0.0
        own = self.amounts[child[1]] if isinstance(child[1], int) else self.use(child[1])
        whole = sum(self.amounts) if above == "root" else self.use(above)
        used = own / whole if whole else 0.0
        return inf if used == 0 else (raw / level) / used

    def visit(self, name: str, *, tied: bool) -> None:
        """Rank the users below an account."""
        children: list[Child] = [
            ("account", each) for each in self.parent if self.parent[each] == name
        ]
        children += [
            ("user", number) for number, account in enumerate(self.account) if account == name
        ]
        children.sort(key=lambda child: (-self.value(child), child[0] == "account"))
        before = 0.0
        for place, child in enumerate(children):
            is_tied = self.value(child) == before if place else tied
            before = self.value(child)
            if isinstance(child[1], int):
                if not is_tied:
                    self.rank = self.following
                self.found[child[1]] = self.rank / len(self.found)
                self.following -= 1
            else:
                self.visit(child[1], tied=is_tied)


@pytest.mark.parametrize("seed", range(size(60, 3000)))
def test_random_trees_are_as_the_naive_oracle_ranks_them(seed: int) -> None:
    draw = random.Random(seed)
    rows = []
    for number in range(draw.randint(1, 6)):
        parent = draw.choice(["root", *(f"a{each}" for each in range(number))])
        users = {
            f"u{number}{each}": draw.choice([0, 1, 1, 2, 5, OF_PARENT])
            for each in range(draw.randint(0, 3))
        }
        rows.append((f"a{number}", parent, draw.choice([0, 1, 1, 3, 10]), users))
    site = accounts_of(*rows)
    tree = ShareTree(site)
    amounts = [float(draw.choice([0, 0, 1, 1, 2, 50])) for _ in range(tree.users)]
    assert tree.factors(used(tree, amounts), "tree", 1) == NaiveTree(site, amounts).found


def test_powers_of_two() -> None:
    for number in range(1000):
        x = number * 0.0613
        assert exp2neg(x) == pytest.approx(2.0**-x, rel=1e-15)
    assert exp2neg(2000.0) == 0.0
    assert exp2neg(inf) == 0.0
