"""What a page says about the machine of a run: the use of resources and partitions, reservations,
and maps of hosts."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from qbatch.reports.host_use import HostMap
from qbatch.reports.plots import draw
from qbatch.reports.report.study import OnMachine, ReportStudy
from qbatch.results.run_words import value_text
from qbatch.results.shown import span

_MOST_ON_A_MAP = 6
_RESERVATION = ("Reservation", "Hosts", "Kind", "Users", "Start", "Lasts", "Repeats")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the page; its first ``words`` columns are texts, the others numbers."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG in base64, with its title."""

    title: str
    png: str


@dataclass(frozen=True, slots=True)
class MachineSection:
    """The section of the page about the machine."""

    tables: tuple[Table, ...]
    pictures: tuple[Picture, ...]
    notes: tuple[str, ...]


def machine_section(study: ReportStudy, site: OnMachine | None) -> MachineSection | None:
    """Return the section about the machine of the first replica; None if its results hold neither
    resources nor partitions nor hosts of jobs.

    What a machine file and a side file let qbatch measure comes before what a result holds.
    """
    known = site or OnMachine()
    facts = {policy: _facts(study, policy, known) for policy in study.policies}
    machines = [_mapping(each.get("machine")) for each in study.first.documents]
    kept = known.reservations or next(
        (each["reservations"] for each in machines if each.get("reservations")), ()
    )
    has_partitions = known.has_partitions or any(each.get("partitions") for each in machines)
    pictures = tuple(_pictures(study, known))
    tables = tuple(
        table
        for table in (
            _table(
                "Use of resources",
                ("Resource", "Policy", "There", "Hours", "Utilisation", "Lost", "Unusable"),
                facts,
                "resources",
                lambda policy, each: (each["name"], policy, *_use(each), _unusable(each)),
            ),
            _table(
                "Use of partitions",
                ("Partition", "Resource", "Policy", "There", "Hours", "Utilisation", "Lost"),
                facts,
                "partitions",
                lambda policy, each: (each["partition"], each["name"], policy, *_use(each)),
            ),
            _table(
                "Billed hours",
                ("Partition", "Policy", "Jobs", "Billed hours"),
                facts,
                "billed",
                lambda policy, each: (
                    each["partition"],
                    policy,
                    f"{each['jobs']:,}",
                    f"{each['hours']:,.1f}",
                ),
            ),
            Table("Reservations", _RESERVATION, tuple(map(_reservation, kept)), len(_RESERVATION)),
        )
        if table.rows
    )
    if not (tables or pictures or has_partitions):
        return None
    notes = [*(f"{note[:1].upper()}{note[1:]}." for note in known.notes)]
    unmeasured = [name for name, each in facts.items() if not each.get("partitions")]
    if has_partitions and unmeasured and site is None:
        notes.append(
            f"The use of partitions under {', '.join(unmeasured)} is not known, because the result "
            "does not hold the hosts of its jobs; qbatch replay --driver engine records them."
        )
    if not known.maps and not pictures:
        notes.append(
            "There is no map of hosts: it needs the machine file and the side file of the run "
            "(qbatch report --machine FILE --resources FILE)."
        )
    elif not pictures:
        notes.append(
            "There is no map of hosts, because no result here holds the hosts of its jobs."
        )
    if unsure := max((each.get("unsure_on_hosts", 0) for each in facts.values()), default=0):
        notes.append(
            f"Of {unsure:,} jobs only the sum over their hosts is known: each host counts what it "
            "must have had at least."
        )
    return MachineSection(tables, pictures, tuple(notes))


def _facts(study: ReportStudy, policy: str, known: OnMachine) -> dict[str, Any]:
    """Return the use of resources and partitions under a policy: what is measured, else what a
    result holds."""
    found: dict[str, Any] = {}
    for document in study.first.documents:
        for one in document.get("results") or ():
            if _mapping(one).get("policy") == policy:
                found |= one
    return found | dict(known.measured.get(policy, {}))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _table(
    title: str,
    headings: tuple[str, ...],
    facts: Mapping[str, Mapping[str, Any]],
    key: str,
    row: Callable[[str, Mapping[str, Any]], tuple[str, ...]],
) -> Table:
    """Return a table of one kind of facts; a policy without them has no row."""
    rows = [row(policy, each) for policy, of in facts.items() for each in of.get(key) or ()]
    order = list(dict.fromkeys(each[: headings.index("Policy")] for each in rows))
    rows.sort(key=lambda each: order.index(each[: headings.index("Policy")]))
    return Table(title, headings, tuple(rows), headings.index("Policy") + 1)


def _use(each: Mapping[str, Any]) -> tuple[str, ...]:
    shares = (
        value_text(each.get(key), "share") for key in ("utilisation_submit", "loss_of_capacity")
    )
    return f"{each['there']:,}", f"{each['hours']:,.1f}", *shares


def _unusable(each: Mapping[str, Any]) -> str:
    return value_text(each.get("unusable_mean"), "")


def _reservation(kept: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the row of a reservation by its table in a machine file."""
    flags, times = kept.get("flags") or (), kept.get("times")
    kind = "maintenance" if "maint" in flags else "flexible" if "flex" in flags else "-"
    start = kept["start"]
    return (
        str(kept["name"]),
        ", ".join(map(str, kept["hosts"])),
        kind,
        ", ".join(map(str, kept.get("users") or ("all",))),
        f"{start:,.15g} s of the log" if isinstance(start, int | float) else str(start),
        span(int(kept["duration"]) * 1_000_000),
        f"{kept.get('repeat') or 'once'}{f', {times} times' if times else ''}",
    )


def _pictures(study: ReportStudy, known: OnMachine) -> Iterable[Picture]:
    """Yield the maps of hosts: of the files, or of a machine on which each job is inside one
    host."""
    maps: Sequence[HostMap | None] = known.maps
    result = known.result
    if not maps and study.first.result.host_cpus:
        maps, result = (None,), study.first.result
    if result is None:
        return
    shown = replace(result, schedules=result.schedules[:_MOST_ON_A_MAP])
    for each in maps:
        figure = draw(shown, "hosts", of_hosts=each)
        figure.set_facecolor("white")
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=130, metadata={"Software": None})
        name = "processors" if each is None else each.resource
        yield Picture(f"Use of {name} by host", base64.b64encode(out.getvalue()).decode())
