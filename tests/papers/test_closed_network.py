"""The paper of the closed network: its runs, what is kept, what is read of them, and the
command."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qbatch.cli.main import app
from qbatch.metrics import interval
from qbatch.papers import closed_network_claims
from qbatch.papers.closed_network import (
    COMBINATIONS,
    ERRORS,
    FIGURES,
    LONGEST,
    MAXIMA,
    PARTS,
    POLICIES,
    PRFCFS,
    PRLSTF,
    PRSNUTF,
    PRSTF,
    RULES,
    SIZES,
    SQFCFS,
    SQLSTF,
    SQSTF,
    STATIONS,
    TAILS,
    THROUGHPUT,
    UTILISATION,
    NetworkCase,
    NetworkFigures,
    NetworkReplicas,
    NetworkStudy,
    asked,
    half_share,
    replications_needed,
    simulate,
)
from qbatch.papers.closed_network_beyond import order, pairs_kept
from qbatch.papers.closed_network_claims import EXPECTED, RUNS
from qbatch.papers.harness import Runner
from qbatch.papers.markdown import markdown_of
from qbatch.papers.record import FAILS, HOLDS, UNCHECKED, UNDECIDED, VERDICTS
from qbatch.papers.registry import PAPERS
from qbatch.papers.replicas import difference, ratio_of_means
from qbatch.simulation.network_run import NetworkMeasures, NetworkRun
from qbatch.workloads.network import Network

SMALL = NetworkStudy(2, length=40.0)
NETWORK = SMALL.network(16, 2.0)


@pytest.fixture(scope="module")
def runs() -> list[NetworkFigures]:
    return Runner(workers=1).runs(RUNS, SMALL.cases([FIGURES]))


def measured(utilisation: float, longest: float = 10.0) -> NetworkMeasures:
    """Return made-up measures: the throughput is that of the utilisation."""
    return NetworkMeasures(
        utilisation / 0.53125, utilisation, 100, longest / 4, longest, 2.0, 1.0, 1000
    )


# ------------------------------------------------------------------------------------------------
# runs


def test_a_block_is_its_replications_each_with_draws_of_its_own() -> None:
    whole = simulate(NetworkCase(NETWORK, PRSTF, 0, 4, 7)).measures
    parts = [simulate(NetworkCase(NETWORK, PRSTF, first, 2, 7)).measures for first in (2, 0)]
    assert [*parts[1], *parts[0]] == whole, "in any order, in any blocks"
    assert whole[3] == NetworkRun(replace(NETWORK, replication=3), RULES[PRSTF], 7).run()
    assert len(set(whole)) == 4
    assert simulate(NetworkCase(NETWORK, PRSTF, 0, 1, 8)).measures[0] != whole[0], "another seed"


@pytest.mark.parametrize("policy", [PRFCFS, SQFCFS, PRSNUTF])
def test_errors_change_nothing_for_a_policy_that_asks_for_no_estimate(policy: str) -> None:
    wrong = replace(NETWORK, error=0.7)
    assert asked(wrong, policy) == NETWORK
    assert (
        simulate(NetworkCase(wrong, policy, 0, 2)).measures
        == simulate(NetworkCase(NETWORK, policy, 0, 2)).measures
    )


def test_errors_change_what_a_policy_does_that_asks_for_estimates() -> None:
    wrong = replace(SMALL.network(48, 2.0), error=0.7)
    assert asked(wrong, PRLSTF) == wrong
    for policy in (PRSTF, PRLSTF, SQSTF, SQLSTF):
        exact = NetworkCase(replace(wrong, error=0.0), policy, 0, 1)
        assert simulate(NetworkCase(wrong, policy, 0, 1)).measures != simulate(exact).measures


def test_at_one_station_routing_does_not_matter() -> None:
    one = replace(NETWORK, servers=16)
    pairs = ((PRFCFS, SQFCFS), (PRSTF, SQSTF), (PRLSTF, SQLSTF))
    for first, second in pairs:
        assert (
            simulate(NetworkCase(one, first, 0, 2)).measures
            == simulate(NetworkCase(one, second, 0, 2)).measures
        )


# ------------------------------------------------------------------------------------------------
# what is run and kept


def test_a_study_has_each_block_once_and_all_replications_of_each_network() -> None:
    study = NetworkStudy()
    cases = study.cases()
    assert len(cases) == len(set(cases))
    counts: dict[tuple[Network, str], list[int]] = {}
    for case in cases:
        counts.setdefault((case.network, case.policy), []).extend(
            range(case.first, case.first + case.count)
        )
    assert all(numbers == list(range(len(numbers))) for numbers in counts.values()), (
        "none twice, none left out"
    )
    assert {len(numbers) for numbers in counts.values()} == {30, 400, 6}
    assert [len(counts[study.network(48, variation), PRSTF]) for variation in (2.0, 4.0)] == [
        400,
        400,
    ]
    assert {
        network.processors for (network, _), numbers in counts.items() if len(numbers) == 6
    } == {256}
    of_paper = study.cases([FIGURES])
    assert len({case.network for case in of_paper}) == 30 + 12
    assert {case.policy for case in of_paper} == set(POLICIES)
    assert sum(case.count for case in of_paper) == (30 + 12) * 5 * 30
    assert [case.network.processors for case in cases] == sorted(
        case.network.processors for case in cases
    )


def test_each_part_brings_what_it_is_compared_with() -> None:
    study = NetworkStudy(1)
    for part in (ERRORS, COMBINATIONS, TAILS, STATIONS, SIZES):
        found = {(case.network, case.policy) for case in study.cases([part])}
        assert {(study.network(48, 4.0), policy) for policy in POLICIES} <= found, part
    assert {case.network.error for case in study.cases([ERRORS])} == {
        0.0,
        0.1,
        0.2,
        0.3,
        0.5,
        0.7,
        1.0,
    }
    assert {case.policy for case in study.cases([ERRORS]) if case.network.error} == {PRSTF, PRLSTF}
    assert {case.network.servers for case in study.cases([STATIONS])} == {1, 2, 4, 8, 16}
    assert {
        case.network.length for case in study.cases([TAILS]) if case.network.variation == 8
    } == {2e3, 8e3, 32e3}
    assert {case.count for case in study.cases([MAXIMA])} == {10, 3}, "13 replications for one"


def test_a_larger_network_has_a_balanced_io_station() -> None:
    for processors in (64, 256):
        large = NetworkStudy().sized(processors, 2 * processors, 4.0)
        assert large.mean_io * processors / ((1 + processors) / 2) == pytest.approx(1.0)
        assert (large.warmup, large.length) == (200 * processors / 16, 2000)


def test_a_run_depends_on_the_kernels_and_on_its_policy() -> None:
    one, other = (RUNS.sources(NetworkCase(NETWORK, policy, 0, 1)) for policy in (PRSTF, PRLSTF))
    assert len(one) == 64
    assert one != other


def test_any_number_of_processes_and_any_order_make_the_same_bit_for_bit(
    runs: list[NetworkFigures],
) -> None:
    assert Runner(workers=2).runs(RUNS, SMALL.cases([FIGURES])) == runs
    backwards = [simulate(case) for case in reversed(SMALL.cases([FIGURES])[:40])]
    assert backwards[::-1] == runs[:40]


# ------------------------------------------------------------------------------------------------
# what is read


def test_only_the_first_replications_count_where_there_are_more() -> None:
    blocks = [
        NetworkFigures(
            NetworkCase(NETWORK, PRFCFS, first, 2), [measured(0.5 + first / 100), measured(0.6)]
        )
        for first in (2, 0)
    ]
    assert NetworkReplicas(blocks, 3).of(NETWORK, PRFCFS, UTILISATION) == {0: 0.5, 1: 0.6, 2: 0.52}
    assert list(NetworkReplicas(blocks).of(NETWORK, PRFCFS, UTILISATION)) == [0, 1, 2, 3]
    assert NetworkReplicas(blocks).of(NETWORK, PRSTF, UTILISATION) == {}
    none = NetworkReplicas(
        [
            NetworkFigures(
                NetworkCase(NETWORK, PRFCFS, 0, 1), [measured(0.5)._replace(response_max=None)]
            )
        ]
    )
    assert none.of(NETWORK, PRFCFS, LONGEST) == {}


def test_the_interval_of_a_ratio_of_means_is_that_of_the_delta_method() -> None:
    above, below = {0: 3.0, 1: 5.0, 2: 4.5, 3: 6.0}, {0: 2.0, 1: 2.5, 2: 2.2, 3: 3.1}
    found = interval(list(ratio_of_means(above, below).values()))
    ratio = (18.5 / 4) / (9.8 / 4)
    assert found.mean == pytest.approx(ratio)
    residuals = [above[place] - ratio * below[place] for place in above]
    error = math.sqrt(math.fsum(one**2 for one in residuals) / 3 / 4) / (9.8 / 4)
    assert found.high == pytest.approx(ratio + 3.182446 * error)
    assert ratio_of_means(above, {9: 1.0}) == {}
    assert ratio_of_means({0: 1.0, 1: 2.0}, {0: 0.0, 1: 0.0}) == {}
    assert difference({0: 3.0, 1: 4.0}, {1: 1.0, 2: 9.0}) == {1: 3.0}


def test_so_many_replications_are_needed_and_one_less_is_not_enough() -> None:
    values = dict(enumerate([10.0, 14.0, 9.0, 12.0, 15.0, 11.0]))
    needed = replications_needed(values)
    assert needed is not None
    assert needed > 6
    mean, deviation = 71 / 6, math.sqrt(sum((one - 71 / 6) ** 2 for one in values.values()) / 5)

    def share(n: int) -> float:
        """Return half the interval of n values that vary as these do, as a share of the mean."""
        spread = deviation * math.sqrt((n - 1) / n)
        pairs = [mean - spread, mean + spread] * (n // 2) + [mean] * (n % 2)
        scale = deviation / math.sqrt(sum((one - mean) ** 2 for one in pairs) / (n - 1))
        return half_share(dict(enumerate(mean + scale * (one - mean) for one in pairs))) or 0.0

    assert share(needed) < 0.05 <= share(needed - 1)
    assert replications_needed({0: 1.0}) is None
    assert replications_needed({0: 1.0, 1: 1.0}) == 2


def made(
    utilisations: dict[str, float], network: Network = NETWORK, jitter: float = 0.001
) -> list[NetworkFigures]:
    """Return four replications of a network where the policies have these utilisations, each with
    its own noise."""
    return [
        NetworkFigures(
            NetworkCase(network, policy, 0, 4),
            [measured(mean + jitter * ((place * (number + 2)) % 3 - 1)) for place in range(4)],
        )
        for number, (policy, mean) in enumerate(utilisations.items())
    ]


def test_an_order_says_what_is_decided_and_what_became_of_its_pairs() -> None:
    base, other = NETWORK, replace(NETWORK, servers=4)
    before = {PRFCFS: 0.5, SQFCFS: 0.9, PRSTF: 0.7, PRSNUTF: 0.6001, PRLSTF: 0.6}
    after = {PRFCFS: 0.72, SQFCFS: 0.9, PRSTF: 0.72, PRSNUTF: 0.6, PRLSTF: 0.8}
    replicas = NetworkReplicas([*made(before, base), *made(after, other)])
    assert order(replicas, base) == "SQFCFS > PrSTF > PrSNUTF ~ PrLSTF > PrFCFS"
    assert order(replicas, other).startswith("SQFCFS > PrLSTF > Pr")
    assert order(replicas, other).endswith(" > PrSNUTF")
    assert order(replicas, replace(base, servers=8)) == ""
    # Decided before: all pairs but PrSNUTF and PrLSTF; turned: PrSTF and PrLSTF, PrSNUTF and
    # PrFCFS; open: PrSTF and PrFCFS.
    assert pairs_kept(replicas, other, base) == {"kept": 6, "open": 1, "turned": 2}


# ------------------------------------------------------------------------------------------------
# what comes out


def test_every_part_has_tables_and_pictures_of_its_own_runs() -> None:
    pytest.importorskip("matplotlib")
    study = NetworkStudy(1, length=20.0)
    names = []
    for part in PARTS:
        if part != SIZES:
            outcome = closed_network_claims.run_paper(study, [part], Runner(workers=1))
            names += [table.name for table in outcome.tables]
            assert all(table.rows for table in outcome.tables), part
            assert all(draw() for draw in outcome.pictures.values()), part
            assert bool(outcome.claims) == (part in (FIGURES, ERRORS))
    assert len(names) == len(set(names)) == 17


def test_more_processors_are_shown_next_to_those_of_the_paper() -> None:
    pytest.importorskip("matplotlib")
    study = NetworkStudy(2)
    networks = {case.network for case in study.cases([SIZES])}
    utilisations = {PRFCFS: 0.5, SQFCFS: 0.9, PRSTF: 0.7, PRSNUTF: 0.65, PRLSTF: 0.6}
    found = [run for network in networks for run in made(utilisations, network)]
    outcome = closed_network_claims.outcome_of(study, found, [SIZES])
    (table,) = outcome.tables
    assert [(row["P"], row["N"]) for row in table.rows[:8]] == [
        (16, 16),
        (16, 32),
        (16, 48),
        (64, 64),
        (64, 128),
        (64, 192),
        (256, 256),
        (256, 768),
    ]
    assert {(row["kept"], row["open"], row["turned"]) for row in table.rows} == {(10, 0, 0)}
    assert outcome.pictures["closed-network-sizes"]()


def test_what_is_known_of_a_verdict_is_only_of_whole_studies() -> None:
    assert EXPECTED
    for name, verdict in EXPECTED.items():
        assert closed_network_claims.expected(name, NetworkStudy()) == verdict
        assert closed_network_claims.expected(name, NetworkStudy(29)) == UNDECIDED
        assert closed_network_claims.expected(name, NetworkStudy(seed=2)) == UNDECIDED
        assert closed_network_claims.expected(name, SMALL) == UNDECIDED
    assert closed_network_claims.expected("f99.nothing", NetworkStudy()) == UNDECIDED


def test_the_command_makes_the_folder_and_a_second_one_takes_its_runs(
    tmp_path: Path, forms: Callable[..., None]
) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "made"
    command = [
        "paper",
        "closed-network",
        "--replications",
        "1",
        "--table",
        "combinations",
        "--out",
        str(out),
    ]
    printed = CliRunner().invoke(app, [*command, "--json", "-q"])
    assert printed.exit_code == 0, printed.output
    first = json.loads(printed.stdout)
    assert first["options"] == {
        "replications": 1,
        "seed": 1,
        "warmup_s": 200.0,
        "window_s": 2000.0,
        "parts": ["combinations"],
    }
    assert [table["name"] for table in first["tables"]] == ["closed-network-combinations"]
    assert (out / "results.md").read_text() == markdown_of(
        json.loads((out / "tables.json").read_text())
    )
    assert all(
        (out / f"{name}.{form}").is_file() for name in first["pictures"] for form in ("png", "svg")
    )
    assert all((out / f"{table['name']}.csv").is_file() for table in first["tables"])
    forms()
    again = CliRunner().invoke(app, [*command, "--check"])
    assert again.exit_code == 1, again.output
    assert again.stderr.rstrip().endswith(
        "1 replications of 2000 s with seed 1, only of 30 or more of 2000 s with seed 1"
    )
    assert re.search(r"(\d+) of \1 blocks of runs were there already", again.stderr)
    assert "with 1 of the usual 30 replications" in again.stderr
    assert json.loads((out / "tables.json").read_text())["tables"] == first["tables"]


def test_the_verdicts_of_a_study_of_a_few_replications_are_all_known(
    runs: list[NetworkFigures],
) -> None:
    outcome = closed_network_claims.outcome_of(SMALL, runs, [FIGURES])
    verdicts = {one.name: one.verdict for one in outcome.claims}
    assert len(verdicts) == len(outcome.claims)
    assert set(verdicts.values()) <= set(VERDICTS)
    assert verdicts["a.balance"] == HOLDS
    assert verdicts["s43.overhead"] == UNCHECKED
    assert verdicts["s3.RT"] == FAILS
    levels = next(table for table in outcome.tables if table.name == "closed-network-throughput")
    (row,) = (row for row in levels.rows if (row["C"], row["d"], row["N"]) == ("4", "30", 48))
    network = SMALL.network(48, 4.0, 30.0)
    both = [
        NetworkRun(replace(network, replication=place), RULES[SQFCFS], 1).run()
        for place in range(2)
    ]
    assert row[SQFCFS] == pytest.approx(sum(THROUGHPUT(one) or 0.0 for one in both) / 2)


def test_the_parts_are_those_of_the_registry() -> None:
    assert PAPERS["closed-network"].parts == PARTS


def test_the_verdicts_that_are_known_are_those_of_the_document() -> None:
    text = (Path(__file__).parents[2] / "docs" / "papers" / "closed-network-results.md").read_text(
        encoding="utf-8"
    )
    by_claim = dict(
        re.findall(r"^\| ([a-zA-Z0-9]+\.\S+): .*? \| \*\*([a-z ]+)\*\* \|", text, re.MULTILINE)
    )
    assert len(by_claim) == 46
    decided = {name: verdict for name, verdict in by_claim.items() if verdict in (HOLDS, FAILS)}
    assert decided == EXPECTED
