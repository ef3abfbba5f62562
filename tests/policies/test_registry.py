"""Names, parameters, and policies of a user's own."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from qbatch.model.errors import UsageError
from qbatch.planning.policy import name_of
from qbatch.policies import POLICIES, load_policy
from qbatch.policies.registry import name_among

OWN = '''
from qbatch.model.actions import Start

class Smallest:
    """Start the smallest job that fits, again and again."""

    def __init__(self, most: int = 0, how: str = "up") -> None:
        self.name = f"smallest-{most}-{how}"

    def decide(self, view):
        free = view.free_now()
        for job in sorted(view.waiting, key=lambda job: (job.procs, job.row)):
            if free.take(job):
                yield Start(job.row)

class NoPolicy:
    pass
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_policies.py").write_text(OWN)
    (tmp_path / "broken_policies.py").write_text("import nothing_like_this")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("own_policies", "broken_policies"):
        sys.modules.pop(name, None)
    return "own_policies"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("easy", "easy"),
        ("easy:order=fcfs", "easy"),
        ("easy:order=lxf", "easy:order=lxf"),
        ("hybrid:order=sjf,depth=4", "hybrid:depth=4,order=sjf"),
        ("conservative:compress=start", "conservative:compress=start"),
    ],
)
def test_names_are_canonical(text: str, name: str) -> None:
    assert name_of(load_policy(text)) == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("esy", "did you mean 'easy'"),
        ("easy:ordr=sjf", "no parameter 'ordr'; did you mean 'order'"),
        ("easy:order=sfj", "did you mean 'sjf'"),
        ("hybrid:depth=-1", "not a whole number from 0"),
        ("hybrid:depth=x", "not a whole number from 0"),
        ("immediate:quantum=5m", "quantum=5m is not a whole number of seconds from 1"),
        ("hybrid:depth", "write name=value"),
        ("hybrid:depth=1,depth=2", "depth appears twice; write it once"),
        ("immediate:inner=easy,inner=lsf", "inner appears twice"),
        ("fcfs:compress=start", "no parameter 'compress'"),
        ("./mine.py:Policy:k=1", "'./mine.py' is a file; name its module: mine:Policy:k=1"),
        ("nowhere:Policy", "module 'nowhere' cannot be imported: ModuleNotFoundError"),
        ("os:Policy", "module 'os' has no 'Policy'"),
        ("", "there is no policy ''"),
    ],
)
def test_a_wrong_name_is_one_clear_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        load_policy(text)
    assert "\n" not in str(error.value)


def test_a_policy_of_ones_own_loads_with_parameters(own: str) -> None:
    assert name_of(load_policy(f"{own}:Smallest")) == "smallest-0-up"
    assert name_of(load_policy(f"{own}:Smallest:most=3,how=down")) == "smallest-3-down"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("own_policies:NoPolicy", "has no method decide"),
        ("own_policies:Smallest:most", "write name=value"),
        ("own_policies:Smallest:nothing=1", "cannot be made: TypeError"),
        ("broken_policies:X", "cannot be imported: ModuleNotFoundError"),
    ],
)
def test_a_broken_policy_of_ones_own_is_one_clear_line(own: str, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_policy(text)


def test_a_policy_from_an_entry_point_loads(own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    point = EntryPoint("announced", f"{own}:Smallest", "qbatch.policies")
    monkeypatch.setattr("qbatch.policies.registry.entry_points", lambda group: [point])
    assert name_of(load_policy("announced:most=2")) == "smallest-2-up"
    with pytest.raises(UsageError, match="announced"):
        load_policy("anounced")


def test_every_policy_says_where_it_comes_from() -> None:
    for entry in POLICIES.values():
        assert entry.meaning
        assert re.search(r"(19|20)\d\d", entry.source)
        assert all(parameter.meaning for parameter in entry.parameters)


@pytest.mark.parametrize(
    ("typed", "names", "found"),
    [
        ("easy", ["easy"], "easy"),
        ("hybrid:depth=7", ["hybrid:depth=7", "easy"], "hybrid:depth=7"),
        (
            "immediate:inner=lsf,protect=60,quantum=60",
            ["immediate:inner=lsf,protect=60"],
            "immediate:inner=lsf,protect=60",
        ),
        (
            "immediate:protect=60,inner=lsf",
            ["immediate:inner=lsf,protect=60"],
            "immediate:inner=lsf,protect=60",
        ),
        # Is not there.
        ("immediate:inner=lsf", ["immediate:inner=lsf,protect=60"], "immediate:inner=lsf"),
        ("easy:depth=none", ["easy"], "easy:depth=none"),
        # And nothing is imported.
        ("no_such_module_at_all:Class", ["easy"], "no_such_module_at_all:Class"),
    ],
)
def test_a_policy_is_found_by_what_one_types(typed: str, names: list[str], found: str) -> None:
    assert name_among(typed, names) == found
