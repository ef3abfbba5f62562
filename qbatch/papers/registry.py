"""The papers whose experiments qbatch can run, by name."""

from __future__ import annotations

from dataclasses import dataclass

from qbatch.model.errors import UsageError, suggestion


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper: who wrote it, what it is called, where it appeared, and what of it can be run.

    ``parts``: what is run where nothing else is said.  ``on_request``: what is run only by name.
    """

    name: str
    authors: str
    title: str
    source: str
    parts: tuple[str, ...]
    on_request: tuple[str, ...] = ()


PAPERS: dict[str, Paper] = {
    "sp2-backfilling": Paper(
        "sp2-backfilling",
        "Dror G. Feitelson and Ahuva Mu'alem Weil",
        "Utilization and Predictability in Scheduling the IBM SP2 with Backfilling",
        "IPPS/SPDP 1998",
        ("1", "2", "3", "figures"),
    ),
    "origin2000": Paper(
        "origin2000",
        "Su-Hui Chiang and Mary K. Vernon",
        "Production Job Scheduling for Parallel Shared Memory Systems",
        "IPDPS 2001",
        ("figures",),
    ),
    "qops": Paper(
        "qops",
        "Mohammad Islam, Pavan Balaji, P. Sadayappan and Dhabaleswar K. Panda",
        "QoPS: A QoS based scheme for Parallel Job Scheduling",
        "OSU-CISRC-4/03-TR21, 2003",
        ("figures", "packed"),
        ("estimates",),
    ),
    "scojo": Paper(
        "scojo",
        "A student of Angela C. Sodan",
        "Group-based optimisation in SCOJO-PECT (master's thesis)",
        "University of Windsor, scholar.uwindsor.ca/etd/2255",
        ("figures", "sizes", "estimates", "plain"),
    ),
    "closed-network": Paper(
        "closed-network",
        "Helen D. Karatza and Ralph C. Hilzer",
        "Performance Analysis of Parallel Job Scheduling in Distributed Systems",
        "36th Annual Simulation Symposium, 2003",
        ("figures", "ties", "maxima", "errors", "combinations", "tails", "stations", "sizes"),
    ),
}
"""Every paper by the name that the command takes."""


def find_paper(name: str) -> Paper:
    """Return the paper of this name.

    Raises:
        UsageError: if there is none, with the nearest known name.
    """
    if name not in PAPERS:
        raise UsageError(f"there is no paper {name!r}{suggestion(name, PAPERS)}; there are {', '.join(PAPERS)}")
    return PAPERS[name]
