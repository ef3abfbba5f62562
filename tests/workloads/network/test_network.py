"""The numbers of the closed network and its draws."""

from __future__ import annotations

import random

import numpy as np
import pytest

from qbatch.model.errors import UsageError
from qbatch.planning.kernels import fractions
from qbatch.workloads import draws as portable
from qbatch.workloads.kernels import network as kernels
from qbatch.workloads.network import Network, NetworkDraws, read_network
from tests.policies import network_oracle

SAMPLES = 200_000


def test_the_table_of_the_bounded_normal_is_that_of_the_paper() -> None:
    table = np.diff(np.concatenate([[0.0], Network().cumulative()]))
    printed = [
        0.00041035,
        0.00188156,
        0.00693904,
        0.02058470,
        0.04912376,
        0.09431332,
        0.14568448,
        0.18106279,
    ]
    assert np.allclose(table, printed + printed[::-1], atol=5e-9)
    assert abs(float((table * np.arange(1, 17)).sum()) - 8.5) < 1e-9


@pytest.mark.parametrize("processors", [1, 2, 3, 7, 64, 256])
def test_other_numbers_of_processors_have_the_table_of_the_oracle(processors: int) -> None:
    table = np.diff(np.concatenate([[0.0], Network(processors=processors).cumulative()]))
    assert np.allclose(table, network_oracle.parallelism_table(processors), atol=1e-9)


def test_the_logarithm_is_the_portable_one_to_the_bit() -> None:
    values = np.random.default_rng(1).random(2000)
    assert [kernels.ln(float(value)) for value in values] == portable.ln(values).tolist()


def test_a_number_below_a_bound_is_exact() -> None:
    rng = random.Random(1)
    for bound in (1, 2, 3, 7, 16, 1000, 4096, 2**31 - 1):
        for _ in range(300):
            drawn = rng.getrandbits(53)
            assert fractions.below(drawn, bound) == bound * drawn >> 53
        assert fractions.below((1 << 53) - 1, bound) == bound - 1


def test_the_words_are_those_of_splitmix64() -> None:
    # The first outputs of the reference program for the seed 1234567.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    with np.errstate(over="ignore"):
        found = [int(fractions.folded(np.uint64(1234567), number)) for number in range(3)]
    assert [value % 2**64 for value in found] == expected


def _sample(which: str, variation: float) -> np.ndarray:
    rng = np.random.default_rng(7)
    first, branch, second = rng.random((3, SAMPLES))
    if which == "exponential":
        return np.asarray(-portable.ln(1.0 - first))
    seconds = -0.5 * portable.ln(1.0 - first)
    is_long = branch < 1 / (2 * variation**2)
    seconds[is_long] += -(variation**2) * portable.ln(1.0 - second[is_long])
    return np.asarray(seconds)


@pytest.mark.parametrize(
    ("variation", "survivors"),
    [
        (1.0, (0.60653, 0.36788, 0.13534, 0.00674, 0.00005)),
        (2.0, (0.44140, 0.22726, 0.10235, 0.04097, 0.01173)),
        (4.0, (0.38728, 0.16127, 0.04619, 0.02364, 0.01727)),
    ],
)
def test_demands_have_their_moments(variation: float, survivors: tuple[float, ...]) -> None:
    which = "exponential" if variation == 1.0 else "erlang"
    seconds = _sample(which, variation)
    assert abs(seconds.mean() - 1) < 0.02
    assert abs(seconds.std() - variation) < 0.05 * variation
    for instant, share in zip((0.5, 1, 2, 5, 10), survivors, strict=True):
        assert abs((seconds > instant).mean() - share) < 0.004
    rng = np.random.default_rng(3)
    for u1, u2, u3 in rng.random((300, 3)).tolist():
        ours = kernels.microseconds(
            kernels.exponential(1.0, u1)
            if which == "exponential"
            else kernels.erlang(1.0, variation, u1, u2, u3)
        )
        theirs = (
            network_oracle.exponential(1.0, u1)
            if which == "exponential"
            else network_oracle.branching_erlang(1.0, variation, u1, u2, u3)
        )
        assert abs(ours - theirs) <= 1


def test_draws_belong_to_the_visit_whatever_was_drawn_before() -> None:
    one, other = (NetworkDraws(Network(variation=4.0, error=0.3), 5) for _ in range(2))
    wanted = {
        (job, visit): one.visit(job, visit, is_normal=False, is_erlang=True).tolist()
        for job in range(3)
        for visit in range(4)
    }
    for job, visit in reversed(list(wanted)):
        assert (
            other.visit(job, visit, is_normal=False, is_erlang=True).tolist() == wanted[job, visit]
        )
        assert other.io_time(job, visit) == one.io_time(job, visit)
    assert len({str(tasks) for tasks in wanted.values()}) == len(wanted)
    later = NetworkDraws(Network(variation=4.0, error=0.3, replication=1), 5)
    assert later.visit(0, 0, is_normal=False, is_erlang=True).tolist() != wanted[0, 0]


def test_policies_share_the_route_and_first_stage_whatever_distribution_is_in_force() -> None:
    draws = NetworkDraws(Network(), 1)
    exponential = draws.visit(0, 0, is_normal=False, is_erlang=False)
    erlang = draws.visit(0, 0, is_normal=False, is_erlang=True)
    assert (exponential[:, kernels.DRAW] == erlang[:, kernels.DRAW]).all()


def test_an_estimate_is_within_its_error() -> None:
    tasks = np.concatenate(
        [
            NetworkDraws(Network(error=0.3), 1).visit(0, visit, is_normal=False, is_erlang=False)
            for visit in range(300)
        ]
    )
    shares = tasks[:, kernels.ESTIMATE] / np.maximum(tasks[:, kernels.DEMAND], 1)
    long = tasks[:, kernels.DEMAND] > 1000
    assert shares[long].min() > 0.699
    assert shares[long].max() < 1.301
    assert shares[long].std() > 0.1


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("closed:N=0", "N=0"),
        ("closed:C=0.9", "C=0.9"),
        ("closed:P=0", "P=0"),
        ("closed:E=1.1", "E=1.1"),
        ("closed:length=0", "length=0"),
        ("closed:x=0", "x=0"),
        ("closed:d=-1", "d=-1"),
        ("closed:Q=1", "'Q'"),
        ("closed:N=four", "N=four"),
        ("clsed:N=1", "'closed'"),
        ("closed:P=6,servers=4", "servers=4"),
        ("closed:N=2,N=3", "twice"),
        ("closed:N", "name=value"),
        ("closed:demand=normal", "normal"),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        read_network(text)


@pytest.mark.parametrize("field", ["jobs", "processors", "length"])
def test_a_network_of_a_library_user_is_checked_too(field: str) -> None:
    with pytest.raises(UsageError, match="network"):
        Network(**{field: 0})  # type: ignore[arg-type]


def test_a_network_is_named_as_it_is_typed() -> None:
    text = "closed:N=24,C=4,d=10,e=10"
    assert read_network(text).name == text
    assert read_network("closed").name == "closed"
    machine = read_network("closed:P=8,servers=2").machine()
    assert [(host.name, host.cpus) for host in machine.hosts] == [
        ("n1", 2),
        ("n2", 2),
        ("n3", 2),
        ("n4", 2),
    ]
    assert machine.single_host
    assert read_network("closed:P=8,servers=8").machine().procs == 8
