"""The metrics of finished schedules, measured again: the record of ``qbatch metrics RESULT...``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qbatch.metrics import breakdown, measure
from qbatch.reports.report.study import Replica

_KEPT = ("options", "skipped", "estimates_missing", "killed_at_estimate")


def measured(replica: Replica, by: Sequence[str] = ()) -> dict[str, Any]:
    """Return the metrics of each policy, with breakdowns by some keys, in the shape of ``qbatch replay --json``.

    The facts about the run (options, jobs left out) are those of the first replay among the results.
    """
    result = replica.result
    told = next((each for each in replica.documents if not each.get("recorded")), replica.documents[0])
    log = told.get("log")
    results = []
    for schedule in result.schedules:
        one: dict[str, Any] = {"policy": schedule.policy, "metrics": measure(schedule)}
        for key in by:
            groups = [{"label": g.label, "jobs": g.jobs, "metrics": g.metrics} for g in breakdown(schedule, key)]
            one.setdefault("by", {})[key] = groups
        results.append(one)
    machine = told.get("machine")
    return {
        "log": {
            "name": result.name,
            **(log if isinstance(log, Mapping) else {}),
            "jobs": max(int(schedule.ran.sum()) for schedule in result.schedules),
        },
        "machine": {**(machine if isinstance(machine, Mapping) else {}), "procs": result.procs_total},
        **{key: told[key] for key in _KEPT if key in told},
        "results": results,
    }
