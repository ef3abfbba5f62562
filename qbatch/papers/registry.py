"""The papers with experiments that qbatch can run, by name, with their options; a paper is imported
only when it is run.

A paper ``a-b`` is the module ``qbatch.papers.a_b``, which has ``study_of(**options)``, and the
module ``qbatch.papers.a_b_claims``, which has ``run_paper(study, parts, runner)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from qbatch.model.errors import UsageError, suggestion

if TYPE_CHECKING:
    from qbatch.papers.harness import Runner, Study
    from qbatch.papers.record import PaperOutcome


@dataclass(frozen=True, slots=True)
class PaperOption:
    """An option of a paper: its flags, its help, and the type of its value.

    ``study_of`` takes it by the name of its first flag.  ``least``, ``most``: bounds of a number.
    A text may be given several times.  An option that is on or off is about the part of the same
    name, which is left out if the option is off.
    """

    flags: tuple[str, ...]
    help: str
    kind: type[int] | type[str] | type[bool] = int
    least: int | None = None
    most: int | None = None

    @property
    def name(self) -> str:
        """The name of its first flag."""
        return self.flags[0].partition("/")[0].strip("-")


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper: its authors, title and source, the parts that can be run, and their options.

    ``parts``: what is run by default.  ``on_request``: what is run only by name.  ``most_logs``:
    the most logs that it takes (None: any number); ``kernels``: the compiled functions that it runs
    first, by the names of their caches.
    """

    name: str
    authors: str
    title: str
    source: str
    parts: tuple[str, ...]
    on_request: tuple[str, ...] = ()
    options: tuple[PaperOption, ...] = ()
    most_logs: int | None = 0
    kernels: tuple[str, ...] = ("run_rounds_*",)

    @property
    def has_parts(self) -> bool:
        """Whether there is a choice of parts."""
        return len(self.parts) > 1

    @property
    def takes(self) -> list[str]:
        """The names, for the user, of arguments and options that not every paper takes."""
        own = [option.flags[0].rpartition("/")[2] for option in self.options]
        return ["LOG"] * (self.most_logs != 0) + ["--table"] * self.has_parts + own

    def study(self, **options: Any) -> Study:
        """Return the study with some options; the paper has defaults for the others.

        Raises:
            InputError: a log cannot be used.
            UsageError: the options do not go together.
        """
        study: Study = import_module(self._module).study_of(**options)
        return study

    def run(self, study: Study, parts: Sequence[str], runner: Runner) -> PaperOutcome:
        """Run some parts of a study and return tables, claims and pictures.

        Raises:
            QbatchError: a run failed.
        """
        outcome: PaperOutcome = import_module(f"{self._module}_claims").run_paper(
            study, parts, runner
        )
        return outcome

    @property
    def _module(self) -> str:
        return f"qbatch.papers.{self.name.replace('-', '_')}"


def _count(name: str, text: str, least: int = 1, most: int = 1000) -> PaperOption:
    return PaperOption((f"--{name}",), text, least=least, most=most)


def _seed(of: str) -> PaperOption:
    return PaperOption(("--seed",), f"Seed of all that is drawn: {of}.", least=0)


_PROCS = PaperOption(("--procs",), "Processors (else the log's header).", least=1, most=10**9)

_ALL = (
    Paper(
        "sp2-backfilling",
        "Dror G. Feitelson and Ahuva Mu'alem Weil",
        "Utilization and Predictability in Scheduling the IBM SP2 with Backfilling",
        "IPPS/SPDP 1998",
        ("1", "2", "3", "figures"),
        options=(
            _count(
                "seeds", "How many draws of estimates, and of logs made of the log's weeks (10)."
            ),
            _seed("estimates, and weeks of the log (0)"),
            _PROCS,
            PaperOption(("--figures/--no-figures",), "Figures 9 to 11 too.", bool),
        ),
        most_logs=1,
    ),
    Paper(
        "origin2000",
        "Su-Hui Chiang and Mary K. Vernon",
        "Production Job Scheduling for Parallel Shared Memory Systems",
        "IPDPS 2001",
        ("figures",),
        options=(
            PaperOption(("--months", "-m"), "Only this month; may be repeated.", str),
            _count("replicas", "How often each month is drawn (10)."),
            _seed("the months (1)"),
            PaperOption(("--days",), "Only the first days of each month."),
        ),
        kernels=(),
    ),
    Paper(
        "qops",
        "Mohammad Islam, Pavan Balaji, P. Sadayappan and Dhabaleswar K. Panda",
        "QoPS: A QoS based scheme for Parallel Job Scheduling",
        "OSU-CISRC-4/03-TR21, 2003",
        ("figures", "packed"),
        ("estimates",),
        options=(
            _count("subsets", "How many disjoint subsets of each log (10)."),
            _count("jobs", "Jobs of a subset (5000).", 10, 1_000_000),
            _seed("generated logs, deadlines and duplicates (1)"),
            _PROCS,
        ),
        most_logs=None,
    ),
    Paper(
        "scojo",
        "A student of Angela C. Sodan",
        "Group-based optimisation in SCOJO-PECT (master's thesis)",
        "University of Windsor, scholar.uwindsor.ca/etd/2255",
        ("figures", "sizes", "estimates", "plain"),
        options=(
            _count("workloads", "How many workloads of the model (20)."),
            _count("jobs", "Jobs of a workload (10000).", 10, 1_000_000),
            _seed("workloads of the model (101)"),
        ),
        most_logs=None,
    ),
    Paper(
        "closed-network",
        "Helen D. Karatza and Ralph C. Hilzer",
        "Performance Analysis of Parallel Job Scheduling in Distributed Systems",
        "36th Annual Simulation Symposium, 2003",
        ("figures", "ties", "maxima", "errors", "combinations", "tails", "stations", "sizes"),
        options=(
            _count("replications", "Replications of each network (30)."),
            _seed("the replications (1)"),
        ),
        kernels=("run_network",),
    ),
)

PAPERS: dict[str, Paper] = {one.name: one for one in _ALL}
"""Every paper by the name that the command takes."""


def find_paper(name: str) -> Paper:
    """Return the paper of this name.

    Raises:
        UsageError: if there is none, with the nearest known name.
    """
    if name not in PAPERS:
        raise UsageError(
            f"there is no paper {name!r}{suggestion(name, PAPERS)}; there are {', '.join(PAPERS)}"
        )
    return PAPERS[name]
