"""``qbatch paper``: what each paper takes, as its declaration says, and what is refused before any
work."""

import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from qbatch.cli.main import app
from qbatch.model.errors import OutputError, UsageError
from qbatch.papers.registry import PAPERS


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["paper", *arguments])


@pytest.mark.parametrize(
    "arguments", [[], ["--list"], ["sp2-backfilling", "--list"], ["--list", "qops"]]
)
def test_papers_are_listed(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 0
    for part in ("sp2-backfilling", "Feitelson", "figures, packed, estimates"):
        assert part in result.stdout


@pytest.mark.parametrize("name", PAPERS)
def test_the_help_of_a_paper_shows_its_own_options_and_those_of_all(name: str) -> None:
    shown = run(name, "--help").stdout
    others = (
        {option for one in PAPERS.values() for option in one.takes}
        - set(PAPERS[name].takes)
        - {"LOG"}
    )
    for option in [*PAPERS[name].takes, "--out", "--json", "--check", "--quiet"]:
        assert option in shown, option
    assert not [option for option in others if f"{option} " in shown]


def test_listing_and_help_load_no_numpy() -> None:
    code = (
        "import sys; from qbatch.cli.main import run; run(['paper', {!r}]); sys.exit('numpy' "
        "in "
        "sys.modules)"
    )
    for argument in ("--list", "--help"):
        assert (
            subprocess.run(
                [sys.executable, "-c", code.format(argument)], capture_output=True, check=False
            ).returncode
            == 0
        )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nothing"], "there is no paper 'nothing'"),
        (["sp2-backfiling"], "did you mean 'sp2-backfilling'"),
        (["sp2-backfilling", "--table", "4"], "1, 2, 3, figures"),
        (["sp2-backfilling", "--table", "figures", "--no-figures"], "contradict"),
        (
            ["sp2-backfilling", "--replicas", "3"],
            "it takes LOG, --table, --seeds, --seed, --procs, --no-figures",
        ),
        (["sp2-backfilling", "--days", "2"], "takes no --days"),
        (["sp2-backfilling", "--subsets", "3"], "takes no --subsets"),
        (["sp2-backfilling", "a.swf", "b.swf"], "takes one LOG, not 2"),
        (["origin2000", "--seeds", "3"], "it takes --months, --replicas, --seed, --days"),
        (["origin2000", "--table", "figures"], "takes no --table"),
        (["origin2000", "some.swf"], "takes no LOG"),
        (["qops", "--months", "1999-12"], "takes no --months"),
        (["qops", "--no-figures"], "takes no --no-figures"),
        (["qops", "--workloads", "3"], "takes no --workloads"),
        (["qops", "--table", "7"], "figures, packed, estimates"),
        (["scojo", "--subsets", "3"], "takes no --subsets"),
        (["scojo", "--procs", "64"], "takes no --procs"),
        (["scojo", "--no-figures"], "takes no --no-figures"),
        (["scojo", "--replications", "3"], "takes no --replications"),
        (["scojo", "--table", "7"], "figures, sizes, estimates, plain"),
        (["closed-network", "--workloads", "3"], "takes no --workloads"),
        (["closed-network", "a.swf"], "takes no LOG"),
        (
            ["closed-network", "--table", "7"],
            "figures, ties, maxima, errors, combinations, tails, stations, sizes",
        ),
        (["--json", "--subsets", "3", "scojo"], "paper scojo takes no --subsets"),
        (["--out", "qops", "--days", "3", "scojo"], "paper scojo takes no --days"),
    ],
)
def test_what_a_paper_does_not_take_is_refused(arguments: list[str], text: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, UsageError)
    assert text in str(result.exception)


@pytest.mark.parametrize(
    ("out", "text"), [("/nowhere/at/all", "does not exist"), (__file__, "is a file")]
)
def test_a_folder_that_cannot_be_written_is_refused(out: str, text: str) -> None:
    result = run("sp2-backfilling", "--out", out)
    assert isinstance(result.exception, OutputError)
    assert text in str(result.exception)
