"""The loop of each compiled policy: it is found again on disk, and no two policies share its
code."""

from __future__ import annotations

import pytest

from qbatch.model.machine import Host, Machine, one_host
from qbatch.planning.kernels import jit
from qbatch.planning.policy import compiled_of
from qbatch.policies import load_policy
from qbatch.policies.registry import POLICIES
from qbatch.simulation.compiled import loop_of

pytestmark = pytest.mark.skipif(jit.IS_PLAIN, reason="nothing is compiled here")

MACHINES = {
    "pool": one_host(8),
    "hosts": Machine((Host("a", 8, 100), Host("b", 4)), single_host=True),
}
MORE = (
    "conservative:compress=start",
    "conservative:compress=scratch",
    "easy:order=sjf",
    "hybrid:depth=4",
)


def names_on(machine: Machine) -> dict[str, str]:
    """Return the name of the loop of each policy that is compiled on a machine."""
    compiled = {name: compiled_of(load_policy(name), machine) for name in (*POLICIES, *MORE)}
    return {
        name: loop_of(each, has_admission=False).qualified_name
        for name, each in compiled.items()
        if each is not None
    }


@pytest.mark.parametrize("machine", MACHINES)
def test_the_loop_of_a_policy_has_a_name_of_its_own_by_what_it_was_made_with(machine: str) -> None:
    names = names_on(MACHINES[machine])
    assert len(names) > 5
    # A loop with constants that are not all known by name would be compiled anew in each process.
    assert all(name.startswith("run_rounds_") for name in names.values())
    kernels = {name: compiled_of(load_policy(name), MACHINES[machine]) for name in names}
    made_with = {name: (each.decide, each.needs) for name, each in kernels.items()}
    for name in names:
        for other in names:
            assert (names[name] == names[other]) == (made_with[name] == made_with[other]), (
                name,
                other,
            )
