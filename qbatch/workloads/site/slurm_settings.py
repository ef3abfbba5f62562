"""The settings of a ``slurm.conf`` that decide the order of jobs and the passes (slurm.conf(5) of
Slurm 22.05; docs/spec/production.md 2.1, 4.1, 4.2, 6 and 7).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from qbatch.model.errors import InputError, suggestion
from qbatch.model.site import (
    CLASSIC,
    MULTIFACTOR,
    FairShare,
    Passes,
    Preemption,
    Priority,
    Site,
)
from qbatch.workloads.site.notes import SiteNotes
from qbatch.workloads.site.slurm_names import is_yes, resource_name, seconds, whole


class Setting(NamedTuple):
    """The value of a setting, and its place."""

    value: str
    place: str


_WEIGHTS = {
    "priorityweightage": "age",
    "priorityweightassoc": "association",
    "priorityweightfairshare": "fairshare",
    "priorityweightjobsize": "size",
    "priorityweightpartition": "partition",
    "priorityweightqos": "qos",
}
_FLAGS = {
    "ACCRUE_ALWAYS": "accrue-always",
    "SMALL_RELATIVE_TO_TIME": "relative-to-time",
    "MAX_TRES": "max-tres",
    "MAX_TRES_GRES": "max-tres-gres",
    "NO_NORMAL_ASSOC": "no-normal-association",
    "NO_NORMAL_PART": "no-normal-partition",
    "NO_NORMAL_QOS": "no-normal-qos",
    "NO_NORMAL_TRES": "no-normal-resources",
}
_NO_FAIR_TREE, _FAIR_TREE, _OBLIVIOUS = "NO_FAIR_TREE", "FAIR_TREE", "DEPTH_OBLIVIOUS"
_RESETS = {
    name.upper(): name for name in ("now", "daily", "weekly", "monthly", "quarterly", "yearly")
}
_MINUTES, _SECONDS, _MICROSECONDS, _WHOLE, _SWITCH = range(5)
_PARAMETERS = {
    "bf_interval": ("backfill_interval", _SECONDS),
    "bf_resolution": ("backfill_resolution", _SECONDS),
    "bf_window": ("backfill_window", _MINUTES),
    "bf_max_job_test": ("backfill_depth", _WHOLE),
    "max_job_bf": ("backfill_depth", _WHOLE),
    "bf_max_job_user": ("backfill_per_user", _WHOLE),
    "bf_max_job_part": ("backfill_per_partition", _WHOLE),
    "bf_max_job_user_part": ("backfill_per_user_and_partition", _WHOLE),
    "bf_max_job_assoc": ("backfill_per_association", _WHOLE),
    "bf_max_job_start": ("backfill_starts", _WHOLE),
    "bf_max_job_array_resv": ("backfill_array_tasks", _WHOLE),
    "bf_min_age_reserve": ("backfill_min_age", _SECONDS),
    "bf_min_prio_reserve": ("backfill_min_priority", _WHOLE),
    "bf_one_resv_per_job": ("backfill_once_per_job", _SWITCH),
    "bf_licenses": ("backfill_licences", _SWITCH),
    "default_queue_depth": ("depth", _WHOLE),
    "partition_job_depth": ("partition_depth", _WHOLE),
    "sched_interval": ("interval", _SECONDS),
    "sched_min_interval": ("least_gap", _MICROSECONDS),
    "batch_sched_delay": ("delay", _SECONDS),
    "defer": ("is_deferring", _SWITCH),
    "assoc_limit_stop": ("assoc_limit_stop", _SWITCH),
}
_OF_COMPUTING = (
    "bf_continue",
    "bf_max_time",
    "bf_yield_interval",
    "bf_yield_sleep",
    "bf_yield_rpc_cnt",
    "max_rpc_cnt",
    "max_sched_time",
    "sched_max_job_start",
    "bf_job_part_count_reserve",
    "build_queue_timeout",
)
_ENFORCED = {
    "associations": "enforces_accounts",
    "limits": "enforces_limits",
    "qos": "enforces_qos",
    "safe": "is_safe",
}
_IMPLIED = {
    "limits": ("associations",),
    "qos": ("associations",),
    "safe": ("associations", "limits"),
}
_REFUSED = {
    "topologyplugin": ("topology/none", "topology/default"),
    "burstbuffertype": (),
    "suspendprogram": (),
    "federationparameters": (),
    "jobsubmitplugins": (),
}


def read_settings(settings: Mapping[str, Setting], notes: SiteNotes) -> Site:
    """Return what the settings of a configuration file decide; ``settings``: by name in small
    letters, the last value of each."""
    priority, fairshare = _priority(settings, notes)
    _refuse(settings, notes)
    return Site(
        priority=priority,
        fairshare=fairshare,
        passes=_passes(settings, notes),
        preemption=_preemption(settings, notes),
        **_enforcement(settings, notes),
    )


def _priority(settings: Mapping[str, Setting], notes: SiteNotes) -> tuple[Priority, FairShare]:
    """Return the weights of priorities, and fair share."""
    kind = settings.get("prioritytype", Setting("priority/multifactor", ""))
    is_multifactor = kind.value.lower() == "priority/multifactor"
    if kind.place:
        notes.use(kind.place, "PriorityType", "[priority] kind")
    values: dict[str, Any] = {"kind": MULTIFACTOR} if is_multifactor else {}
    shares: dict[str, Any] = {}
    flags: list[str] = []
    for name, (value, place) in settings.items():
        if not name.startswith("priority") or name == "prioritytype":
            if name == "fairsharedampeningfactor":
                shares["dampening"] = max(whole(value, place, name), 1)
                notes.use(place, "FairShareDampeningFactor", "[fairshare] dampening")
            continue
        if not is_multifactor:
            notes.ignore(place, name, "jobs go by their submission: PriorityType is priority/basic")
            continue
        if name in _WEIGHTS:
            values[_WEIGHTS[name]] = max(whole(value, place, name), 0)
        elif name == "priorityweighttres":
            values["resources"] = _weights(value, place)
        elif name == "prioritymaxage":
            values["max_age"] = max(seconds(value, place, name), 0)
        elif name == "prioritycalcperiod":
            values["period"] = max(seconds(value, place, name), 1)
        elif name == "prioritydecayhalflife":
            shares["half_life"] = max(seconds(value, place, name), 0)
        elif name == "priorityusageresetperiod":
            shares["reset"] = _RESETS.get(value.upper(), "")
        elif name == "priorityfavorsmall":
            flags += ["favor-small"] if is_yes(value) else []
        elif name == "priorityflags":
            of_flags, is_classic = _flags(value, place, notes)
            flags += of_flags
            shares |= {"kind": CLASSIC} if is_classic else {}
        else:
            notes.ignore(place, name, "is not emulated")
            continue
        notes.use(place, name, "[priority] and [fairshare]")
    return Priority(**values, flags=tuple(dict.fromkeys(flags))), FairShare(**shares)


def _flags(text: str, place: str, notes: SiteNotes) -> tuple[list[str], bool]:
    """Return the flags of ``PriorityFlags``, and whether fair share is the older formula."""
    found: list[str] = []
    words = [word.strip().upper() for word in text.split(",") if word.strip()]
    for word in words:
        if word in _FLAGS:
            found.append(_FLAGS[word])
        elif word == _OBLIVIOUS:
            why = "its formula is not emulated; the Fair Tree is the usual choice"
            notes.refuse(place, _OBLIVIOUS, why)
        elif word not in (_FAIR_TREE, _NO_FAIR_TREE):
            notes.ignore(place, f"PriorityFlags={word}", "is not emulated")
    return found, _NO_FAIR_TREE in words


def _weights(text: str, place: str) -> tuple[tuple[str, float], ...]:
    """Return the weights of ``CPU=1000,Mem=2000,GRES/gpu=3000``."""
    found: dict[str, float] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, value = part.rpartition("=")
        try:
            weight = float(value)
        except ValueError as error:
            raise InputError(f"{place}: {part[:40]!r} is not resource=weight") from error
        if ours := resource_name(name):
            found[ours] = weight
    return tuple(found.items())


def _passes(settings: Mapping[str, Setting], notes: SiteNotes) -> Passes:
    """Return when the scheduler makes its passes."""
    values: dict[str, Any] = {}
    kind = settings.get("schedulertype")
    if kind is not None:
        values["has_backfill"] = kind.value.lower() == "sched/backfill"
        notes.use(kind.place, "SchedulerType", "[scheduler] backfill")
    value, place = settings.get("schedulerparameters", Setting("", ""))
    for part in filter(None, (each.strip() for each in value.split(","))):
        name, equals, text = part.partition("=")
        name = name.lower()
        if name in _PARAMETERS:
            field, unit = _PARAMETERS[name]
            if unit == _SWITCH:
                values[field] = not equals or is_yes(text)
            else:
                number = max(whole(text, place, name), 0)
                values[field] = number * 60 if unit == _MINUTES else number
                if unit == _MICROSECONDS:
                    values[field] = -(-number // 1_000_000)
            notes.use(place, name, "[scheduler]")
        elif name in _OF_COMPUTING:
            notes.ignore(place, name, "passes take no time in a replay")
        else:
            near = suggestion(name, _PARAMETERS)
            notes.ignore(place, name, f"is not emulated{near}")
    return Passes(**values)


def _preemption(settings: Mapping[str, Setting], notes: SiteNotes) -> Preemption:
    """Return which jobs may preempt others."""
    kind, place = settings.get("preempttype", Setting("preempt/none", ""))
    of_type = {"preempt/qos": "qos", "preempt/partition_prio": "partition"}
    values: dict[str, Any] = {"kind": of_type.get(kind.lower(), "none")}
    if place:
        notes.use(place, "PreemptType", "[preempt] kind")
    if "preemptmode" in settings:
        value, place = settings["preemptmode"]
        modes = [each.strip().lower() for each in value.split(",")]
        values["mode"] = next(
            (each for each in modes if each in ("cancel", "requeue", "suspend")), "off"
        )
        notes.use(place, "PreemptMode", "[preempt] mode")
    if "preemptexempttime" in settings:
        value, place = settings["preemptexempttime"]
        values["exempt"] = max(seconds(value, place, "PreemptExemptTime"), 0)
        notes.use(place, "PreemptExemptTime", "[preempt] exempt")
    return Preemption(**values)


def _enforcement(settings: Mapping[str, Setting], notes: SiteNotes) -> dict[str, Any]:
    """Return what is enforced: one word may imply others."""
    value, place = settings.get("accountingstorageenforce", Setting("", ""))
    words = {each.strip().lower() for each in value.split(",") if each.strip()}
    if words & {"1", "yes"}:
        words.add("associations")
    if "all" in words:
        words |= set(_ENFORCED) - {"safe"}
    for word in list(words):
        words |= set(_IMPLIED.get(word, ()))
    if place:
        notes.use(place, "AccountingStorageEnforce", "[scheduler] enforce")
    for word in sorted(words - set(_ENFORCED) - {"all", "1", "yes", "0", "none"}):
        notes.ignore(place, f"AccountingStorageEnforce={word}", "is not emulated")
    return {field: name in words for name, field in _ENFORCED.items()}


def _refuse(settings: Mapping[str, Setting], notes: SiteNotes) -> None:
    """Name the settings with which a replay decides differently from the site."""
    for name, usual in _REFUSED.items():
        if name not in settings or settings[name].value.lower() in ("", "none", *usual):
            continue
        value, place = settings[name]
        if name in ("topologyplugin", "jobsubmitplugins"):
            notes.ignore(place, name, f"{value}: is not emulated, and decisions may differ")
        else:
            notes.refuse(place, name, f"{value}: is not emulated, and jobs would start elsewhere")
