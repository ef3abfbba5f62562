"""Change what jobs ask for (qalter)."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from qbatch.daemon.core import admission, dependencies, flow, passes, run_limits, submission
from qbatch.daemon.core.execution import executor_of
from qbatch.daemon.core.job import USER_HOLD, BatchJob, Prepared
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.steps import Steps, is_enough, members_of
from qbatch.daemon.handlers.verbs import each, handles, is_operator, owned, wrong_state
from qbatch.wire.attributes import JOB_ATTRIBUTES
from qbatch.wire.deadlines import RESOURCE
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import Alter, Changes, Spec
from qbatch.wire.resource_rules import unknown_resource
from qbatch.wire.resources import parse_duration

_SPEC_FIELDS = set(Spec.__struct_fields__) & set(Changes.__struct_fields__) - {
    "name",
    "resources",
    "hold",
    "not_before",
}
"""Fields that are changed as given; the others have rules of their own."""

_WHILE_RUNNING = {attribute.field for attribute in JOB_ATTRIBUTES if attribute.while_running}


@handles(Alter)
def alter(core: Core, actor: Actor, request: Alter) -> Steps[Outcomes]:
    """Change each named job; one that asks for other resources ranks anew."""
    changes = request.changes

    def act(name: str) -> Steps[None]:
        job = owned(core, actor, name)
        ones = yield from members_of(core, job)
        if job.is_subjob:
            raise wrong_state(core, job, "alter its array")
        if any(one.holds_hosts for one in ones):
            others_wait = any(one.is_waiting and not one.is_array for one in ones)
            _check_running(
                core, actor, job, changes, {"walltime", RESOURCE} if others_wait else {"walltime"}
            )
        yield from _change(core, actor, job, changes)
        core.happened("altered", job.key)

    return each(core, request.jobs, act)


def _check_running(
    core: Core, actor: Actor, job: BatchJob, changes: Changes, resources: set[str]
) -> None:
    """Refuse what cannot be changed of a job that runs: all resources but those named; its owner
    may lower its walltime only.

    Source: OpenPBS req_modify.c: PBSE_MODATRRUN for what may not change, PBSE_PERM for a user who
    asks for more.
    """
    names, identifier = set(changes.resources or ()), core.id_of(job.key)
    given = {name for name in Changes.__struct_fields__ if getattr(changes, name) is not None}
    if not given - {"resources"} <= _WHILE_RUNNING or not names <= resources:
        wrong = f" Resource_List.{min(names - resources)}" if names - resources else ""
        raise Refusal(
            "modify-running",
            f"Cannot modify attribute while job running{wrong} {identifier}",
            identifier,
        )
    if "walltime" in names and not is_operator(actor):
        wanted = parse_duration((changes.resources or {})["walltime"])
        if wanted > job.prepared.walltime:
            raise Refusal(
                "not-permitted",
                f"Unauthorized Request  Resource_List.walltime {identifier}",
                identifier,
            )


_CLASHES = {
    "select": ("nodes", "ncpus", "mem", "procs"),
    "nodes": ("select", "ncpus", "procs", "place"),
    "procs": ("select", "nodes", "ncpus"),
    "ncpus": ("select", "nodes", "procs"),
}
"""Resources that would hide a new value of another, or be hidden by it."""


def _merged(old: dict[str, str], new: dict[str, str]) -> dict[str, str]:
    """Return resources in which each new value takes effect: those that would hide it are left
    out."""
    gone = [name for given in new for name in _CLASHES.get(given, ())]
    merged = {name: value for name, value in old.items() if name not in gone}
    for name in ("select", "nodes"):
        if "mem" in new and name in merged:
            merged[name] = re.sub(r":mem=[^:+]*", "", merged[name])
    return {**merged, **new}


def _change(core: Core, actor: Actor, job: BatchJob, changes: Changes) -> Steps[None]:
    new: dict[str, Any] = {
        name: getattr(changes, name) for name in _SPEC_FIELDS if getattr(changes, name) is not None
    }
    if changes.resources is not None:
        new["resources"] = _merged(job.spec.resources, changes.resources)
    spec = msgspec.structs.replace(job.spec, name=changes.name or job.name, **new)
    submission.check_name(spec.name, spec.is_torque)
    bits = (
        None
        if changes.hold is None
        else submission.bits_of_hold(actor, changes.hold, "place and lift")
    )
    # A user changes the user's hold only; those of operators and of the system stay.
    kept = 0 if is_operator(actor) else ~USER_HOLD
    found = dependencies.parse(core, actor, spec.depend) if changes.depend is not None else None
    if found is not None:
        dependencies.refuse_cycle(core, job, found)
    prepared = submission.prepare(core, spec, core.queues[job.queue])
    _check_changes(core, job, changes, spec, prepared)
    ones = [*core.members(job), job] if job.is_array else [job]
    if changes.slot_limit is not None:
        job.slot_limit = changes.slot_limit
        yield from run_limits.recount_jobs(core, core.members(job))
    is_other_request = prepared.request != job.prepared.request
    has_other_deadline = RESOURCE in (changes.resources or {})
    can_run = found is None or flow.depend(core, job, found, is_new=False)
    may_start_as_before = bits is None and found is None and changes.not_before is None
    ranks_anew = is_other_request or has_other_deadline or not may_start_as_before
    judged = _known(core, job) if has_other_deadline and may_start_as_before else []
    keys = {one.key for one in judged}
    for one in [*judged, *(one for one in ones if one.key not in keys)]:
        # All of them get another deadline at one instant.
        if is_enough(core) and not has_other_deadline:
            yield
        if one.is_over:
            continue
        asked = submission.of_task(prepared, one.member) if job.is_array else prepared
        has_other_walltime = one.holds_hosts and asked.walltime != one.prepared.walltime
        one.name = spec.name
        one.priority = spec.priority
        one.modified = core.now
        if has_other_deadline and not one.holds_hosts:
            one.deadline, one.price = admission.deadline_asked(core, spec), None
        if bits is not None:
            one.hold = (one.hold & kept) | bits
        if changes.not_before is not None:
            one.not_before = changes.not_before
        if ranks_anew and one.key not in keys:
            flow.change(core, one, asked, one.queue)
        else:
            one.prepared = asked
        if has_other_walltime:
            executor_of(core).set_walltime(core, one)
        if judged and one is judged[-1]:
            run_limits.arrive_again(core, judged)
    if not can_run:
        yield from flow.delete(core, job, is_forced=False, grace=0, message=dependencies.UNMET)
    if has_other_deadline and any(one.is_pending for one in ones):
        passes.make_pass(core, core.pool_of(job))


def _check_changes(
    core: Core, job: BatchJob, changes: Changes, spec: Spec, prepared: Prepared
) -> None:
    """Refuse changes that cannot be made; nothing has changed then."""
    if (
        job.is_array
        and spec.tasks
        and ("walltime" in (changes.resources or {}) or changes.runtime is not None)
    ):
        raise Refusal(
            "bad-value",
            (
                "each job of this array has a walltime and a run time of its own; alter them one "
                "by "
                "one"
            ),
        )
    if changes.group_list is not None:
        submission.check_group(core, job.group, spec)
    if changes.resources is not None:
        unknown = unknown_resource(
            spec.resources,
            prepared.demand,
            submission.known_names(core, core.queues[job.queue]),
            is_torque=spec.is_torque,
            is_lenient="resources" in core.settings.lenient,
        )
        if unknown is not None:
            code, text = unknown
            words, _, rest = text.partition(" (")
            identifier = core.id_of(job.key)
            raise Refusal(code, f"{words} {identifier}" + (f" ({rest}" if rest else ""), identifier)
    if changes.slot_limit is not None and (not job.is_array or changes.slot_limit < 1):
        raise Refusal("bad-value", "max_run_subjobs is a number of at least 1, for arrays")
    if RESOURCE in (changes.resources or {}):  # the policy judges the new deadline
        deadline = admission.deadline_asked(core, spec)
        assert deadline is not None
        admission.check_deadline(core, core.queues[job.queue], prepared, deadline)
        passes.make_pass(core, core.pool_of(job))
        reason = admission.refusal_of_deadline(core, _known(core, job), deadline, prepared)
        if reason is not None:
            raise admission.refusal_of(reason, core.id_of(job.key))


def _known(core: Core, job: BatchJob) -> list[BatchJob]:
    """Return the waiting jobs of an array, or the job itself, that the policy knows, in order of
    index."""
    return sorted(
        (one for one in core.members(job) if one.row >= 0 and one.is_waiting),
        key=lambda one: one.member,
    )
