"""Figures 4 to 58 of Islam and others 2003 as tables: means over the subsets with half their 95 % intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qbatch.metrics import interval
from qbatch.papers.qops_comparisons import first_figures
from qbatch.papers.qops_replicas import (
    ALL_JOBS,
    ALL_WORK,
    JOBS,
    RESPONSE,
    SLOWDOWN,
    UTILISATION,
    WORK,
    Number,
    QopsReplicas,
    Subsets,
    less,
)
from qbatch.papers.qops_runs import (
    CONSERVATIVE,
    DUPLICATION,
    EASY,
    FACTORS,
    LOADS,
    PRESETS,
    QOPS,
    SCHEMES,
    SHARES,
    STRINGENCIES,
    STRONGER,
    Setting,
)
from qbatch.papers.record import Cell, Column, Row, Table, mean_cells

HOUR_S = 3600.0
CURVES = (EASY, CONSERVATIVE, *SCHEMES)
"""The lines of every figure, in the order of the legend."""

_SHARES: tuple[tuple[str, str, Number], ...] = (
    ("jobs", "unadmitted %", JOBS),
    ("work", "work %", WORK),
    ("all_jobs", "of all jobs %", ALL_JOBS),
    ("all_work", "of all work %", ALL_WORK),
    ("utilisation", "utilisation %", UTILISATION),
)
"""What is told in percent: key, heading, number; the first two of the jobs with deadlines."""

_NOTE = (
    f"{' and '.join(PRESETS)} are the settings that were picked because with them the paper's order appears; "
    f"{' and '.join(STRONGER)} are the stronger settings of the same rivals"
)


def all_tables(replicas: QopsReplicas) -> list[Table]:
    """Return every table of a trace: one for each share of deadline jobs, the paired differences, and R."""
    tables = [runs_table(replicas, share) for share in SHARES]
    tables.append(differences_table(replicas))
    if replicas.method == DUPLICATION:
        tables.append(relaxation_table(replicas))
    return tables


def name_of(replicas: QopsReplicas, what: str) -> str:
    """Return the name of a table or picture of a trace."""
    return f"{replicas.trace.slug}-{replicas.method}-{what}"


def trace_words(replicas: QopsReplicas) -> str:
    """Return ``CTC (430 processors), duplication``."""
    return f"{replicas.trace.name} ({replicas.trace.procs} processors), {replicas.method}"


def figures_of_share(
    replicas: QopsReplicas, share: float, kinds: Sequence[str] = ("mixed", "response", "utilisation", "against")
) -> str:
    """Return which figures of the paper show this share of deadline jobs, as text; of mixed ones only some kinds."""
    first = first_figures(replicas)
    if share == 1:
        return f"Figures {first['all']} to {first['all'] + 2}"
    # The figures of admission begin with 80 %, those of response with 20 %; those of utilisation have both beside each other.
    later = {"mixed": 2 * (share < 0.5), "response": 2 * (share > 0.5), "utilisation": 0, "against": 2 * (share > 0.5)}
    begins = [first[kind] + later[kind] for kind in kinds]
    shown = [f"{begin}-{begin + 1}" for begin in begins]
    return f"Figures {', '.join(shown[:-1])} and {shown[-1]}"


def runs_table(replicas: QopsReplicas, share: float) -> Table:
    """Return what became of a share of deadline jobs: a line for each stringency, load and scheme."""
    rows: list[Row] = []
    for setting in (Setting(share, stringency) for stringency in STRINGENCIES):
        for load in LOADS:
            for scheme in CURVES:
                rows.append(
                    {
                        "s": setting.stringency,
                        "load": load,
                        "scheme": scheme,
                        **_numbers(replicas, setting, load, scheme),
                    }
                )
    columns = [Column("s", "s", 1), Column("load", "load", 1), Column("scheme", "scheme"), Column("subsets", "subsets")]
    for key, heading, _ in _SHARES:
        columns += [Column(key, heading, 1), Column(f"{key}_half", "+-", 1)]
    columns += [Column("loss", "loss points", 1), Column("loss_half", "+-", 1)]
    columns += [Column("response", "response h", 2), Column("response_half", "+-", 2)]
    columns += [Column("slowdown", "slowdown", 1), Column("slowdown_half", "+-", 1)]
    title = (
        f"{figures_of_share(replicas, share)}: {trace_words(replicas)}, {100 * share:g} % of the jobs with deadlines"
    )
    return Table(name_of(replicas, f"q{100 * share:g}"), title, columns, rows, [_NOTE, _RULE_18])


_RULE_18 = (
    "unadmitted and work: of the jobs with deadlines and of their processor-seconds; loss: utilisation of EASY less that of "
    "the scheme; response and slowdown: of admitted jobs without deadlines (EASY, conservative: all of them)"
)


def _numbers(replicas: QopsReplicas, setting: Setting, load: float, scheme: str) -> dict[str, Cell]:
    is_reference = scheme not in SCHEMES
    found = {key: replicas.at(setting, load, scheme, number) for key, _, number in _SHARES}
    cells: dict[str, Cell] = {"subsets": len(found["jobs"])}
    for key, values in found.items():
        if key == "utilisation" or not is_reference:
            cells |= mean_cells(key, interval(list(values.values())), 100.0)
    if scheme != EASY:
        loss = less(replicas.at(setting, load, EASY, UTILISATION), found["utilisation"])
        cells |= mean_cells("loss", interval(loss), 100.0)
    cells |= mean_cells("response", interval(list(replicas.at(setting, load, scheme, RESPONSE).values())), 1 / HOUR_S)
    cells |= mean_cells("slowdown", interval(list(replicas.at(setting, load, scheme, SLOWDOWN).values())))
    return cells


def differences_table(replicas: QopsReplicas) -> Table:
    """Return by how much each rival lies above QoPS, paired by subset: a line for each setting, load and rival."""
    rows: list[Row] = []
    for setting in (Setting(share, stringency) for share in SHARES for stringency in STRINGENCIES):
        for load in LOADS:
            for rival in (*PRESETS, *STRONGER):
                row: dict[str, Cell] = {
                    "q": setting.share, "s": setting.stringency, "load": load, "rival": rival
                }  # fmt: skip
                for key, number in (("jobs", JOBS), ("work", WORK), ("utilisation", UTILISATION)):
                    one, other = (replicas.at(setting, load, scheme, number) for scheme in (rival, QOPS))
                    row |= mean_cells(key, interval(less(one, other)), 100.0)
                rows.append(row)
    columns = [Column("q", "q", 1), Column("s", "s", 1), Column("load", "load", 1), Column("rival", "rival")]
    for key, heading in (("jobs", "jobs points"), ("work", "work points"), ("utilisation", "utilisation points")):
        columns += [Column(key, heading, 2), Column(f"{key}_half", "+-", 2)]
    title = f"{trace_words(replicas)}: the rival less QoPS, paired by subset, with half the 95 % interval"
    notes = [_NOTE, "jobs and work: above 0, QoPS leaves fewer deadline jobs, or less of their work, unadmitted"]
    return Table(name_of(replicas, "differences"), title, columns, rows, notes)


def relaxation_table(replicas: QopsReplicas) -> Table:
    """Return Figures 55 to 58: QoPS under several R."""
    rows: list[Row] = []
    for share in (0.2, 0.8):
        for stringency in STRINGENCIES:
            for factor in FACTORS:
                for load in LOADS:
                    setting = Setting(share, stringency, factor)
                    numbers = _numbers(replicas, setting, load, QOPS)
                    rows.append({"q": share, "s": stringency, "R": factor, "load": load, **numbers})
    columns = [Column("q", "q", 1), Column("s", "s", 1), Column("R", "R", 0), Column("load", "load", 1)]
    for key, heading, decimals in (
        ("jobs", "unadmitted %", 1), ("all_jobs", "of all jobs %", 1), ("response", "response h", 2), ("slowdown", "slowdown", 1)
    ):  # fmt: skip
        columns += [Column(key, heading, decimals), Column(f"{key}_half", "+-", decimals)]
    title = f"Figures 55 to 58: QoPS by the factor R of artificial deadlines, {trace_words(replicas)}"
    return Table(name_of(replicas, "R"), title, columns, rows)


def curve(
    replicas: QopsReplicas, setting: Setting, scheme: str, number: Number, loads: Sequence[float] = LOADS
) -> Iterator[tuple[float, float, float, float]]:
    """Give the points of a curve: load, mean utilisation, mean of the number, half its 95 % interval."""
    for load in loads:
        values: Subsets = replicas.at(setting, load, scheme, number)
        busy = interval(list(replicas.at(setting, load, scheme, UTILISATION).values()))
        found = interval(list(values.values()))
        if found.mean is not None and busy.mean is not None:
            yield load, busy.mean, found.mean, 0.0 if found.high is None else found.high - found.mean
