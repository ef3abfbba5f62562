"""Dependencies between jobs: ``-W depend=TYPE:ID[:ID...]`` (docs/spec/pbs.md section 3).

A job with unmet dependencies is held.  ``after*`` wait for the named jobs; ``before*`` make the
named jobs wait for this one; ``on:COUNT`` waits for that many ``before*`` of other jobs.  A job
with a dependency that can never be met is deleted, and so is one that names an unknown job, as in
OpenPBS (req_register.c): a job may be unknown because it ended long ago.

``runone:ID`` puts a job into a set with another job; only one job of a set runs (OpenPBS,
req_register.c).  While one runs, the others are held; when it has ended, they are deleted; if it is
queued again, they are released.  Each job of a set has the others as children.

This module only returns the consequences: which dependencies are met, which jobs can never run,
which jobs are to be held. :mod:`.flow` carries them out.
"""

from __future__ import annotations

import re

from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Actor, Core
from qbatch.wire.errors import Refusal
from qbatch.wire.identifiers import ARRAY, PLAIN, JobKey

AFTER = ("after", "afterok", "afternotok", "afterany")
BEFORE = {
    "before": "after",
    "beforeok": "afterok",
    "beforenotok": "afternotok",
    "beforeany": "afterany",
}
RUN_ONE = "runone"
NEVER = "never"
"""The type that stands for a dependency on an unknown job."""
UNMET = "a dependency can never be met"
MOST = 1000
"""Dependencies of one job."""

Dependency = tuple[str, JobKey]
"""A type and the other job; for ``on``, the count as a sequence number."""

Doomed = tuple[JobKey, str]
"""A job that can never run, and why."""


def parse(core: Core, actor: Actor, text: str) -> list[Dependency]:
    """Return the dependencies that a text names.

    Raises:
        Refusal: a type is not known, or a named job belongs to another user and would be held.
    """
    found: list[Dependency] = []
    for part in text.split(","):
        kind, colon, rest = part.strip().partition(":")
        kind = kind.lower().replace("array", "") if kind.lower() != "on" else "on"
        if not kind and not colon:
            continue
        names = [name for name in rest.split(":") if name]
        shown, kinds = f"depend={part.strip()[:60]}", [*AFTER, *BEFORE, "on", RUN_ONE]
        if kind not in kinds:
            raise Refusal(
                "bad-dependency", f"{shown}: the type is not known (known: {', '.join(kinds)})"
            )
        if not names:
            raise Refusal("bad-dependency", f"{shown}: names no job")
        if kind == "on":
            if not re.fullmatch("[0-9]{1,5}", names[0]) or not 0 < int(names[0]) <= MOST:
                raise Refusal("bad-dependency", f"{shown}: on needs a count from 1 to {MOST}")
            found.append((kind, JobKey(int(names[0]))))
            continue
        for name in names:
            key = core.key_of(name)
            array = JobKey(key.sequence, ARRAY)
            if (
                key.member == PLAIN
                and core.find(key) is None
                and (array in core.endings or array in core.recent)
            ):
                key = array
            if core.find(key) is None and key not in core.endings and key not in core.recent:
                found.append((NEVER, key))
                continue
            other = core.find(key)
            is_other_held = kind in BEFORE or kind == RUN_ONE
            if (
                is_other_held
                and other is not None
                and other.uid != actor.uid
                and actor.role == "user"
            ):
                raise Refusal(
                    "not-permitted",
                    f"depend={kind}:{name[:60]}: the job is not yours",
                    core.id_of(key),
                )
            if kind == RUN_ONE and (other is None or other.is_over or other.is_subjob):
                why = (
                    "name its array"
                    if other is not None and other.is_subjob
                    else "the job has ended"
                )
                raise Refusal("bad-dependency", f"depend={kind}:{name[:60]}: {why}")
            found.append((kind, key))
    if len(found) > MOST:
        raise Refusal("bad-dependency", f"depend names {len(found)} jobs; {MOST} are allowed")
    return found


def depend_text(core: Core, job: BatchJob) -> str:
    """Return the dependencies as ``qstat -f`` shows them: the jobs that it was submitted after or
    before, and those that wait for it.  Each has its server, as in ``afterok:12.qbatch@qbatch``."""
    waiting = core.children.get(job.key, ()) if core.children else ()
    if not (job.spec.depend or waiting):
        return ""
    parts: dict[str, list[str]] = {}
    for part in job.spec.depend.split(","):
        kind, _, rest = part.strip().partition(":")
        names = [name for name in rest.split(":") if name]
        if kind == RUN_ONE:  # the jobs that are in its set now are among its children
            continue
        if kind == "on":
            parts[kind] = names
        elif names:
            parts.setdefault(kind, []).extend(
                f"{core.id_of(core.key_of(name))}@{core.settings.name}" for name in names
            )
    for kind, key in waiting:
        name = f"{core.id_of(key)}@{core.settings.name}"
        shown = parts.setdefault(
            kind if kind == RUN_ONE else f"before{kind.removeprefix('after')}", []
        )
        if name not in shown:
            shown.append(name)
    return ",".join(f"{kind}:{':'.join(names)}" for kind, names in parts.items())


def register(core: Core, job: BatchJob, found: list[Dependency]) -> tuple[bool, list[BatchJob]]:
    """Enter the dependencies of a job; return whether all can still be met, and the jobs that are
    to be held for it."""
    held = _join(core, job, [key for kind, key in found if kind == RUN_ONE])
    for kind, key in found:
        if kind == NEVER:
            return False, held
        if kind == "on":
            job.unmet += key.sequence
        elif kind in BEFORE:
            child = core.find(key)
            if child is None or not _can_wait(child):
                continue
            core.children.setdefault(job.key, []).append((BEFORE[kind], child.key))
            # Else this is one of those for which it waits already.
            if not ("on:" in child.spec.depend and child.unmet > 0):
                child.unmet += 1
                held.append(child)
        elif kind != RUN_ONE:
            verdict = _already(core, kind, key)
            if verdict is False:
                return False, held
            if verdict is None:
                job.unmet += 1
                core.children.setdefault(key, []).append((kind, job.key))
    return True, held


def rivals(core: Core, key: JobKey) -> list[JobKey]:
    """Return the other jobs of a job's ``runone`` set; none for a job that is in no set."""
    return [child for kind, child in core.children.get(key, ()) if kind == RUN_ONE]


def _join(core: Core, job: BatchJob, named: list[JobKey]) -> list[BatchJob]:
    """Put a job into one set with the jobs that it names and the jobs of their sets; return the
    others that are to be held."""
    members = dict.fromkeys(
        [job.key, *named, *(rival for key in named for rival in rivals(core, key))]
    )
    held: list[BatchJob] = []
    for key in members if named else ():
        known = {key, *rivals(core, key)}
        new = [other for other in members if other not in known]
        core.children.setdefault(key, []).extend((RUN_ONE, other) for other in new)
        one, running = core.find(key), sum(has_begun(core, other) for other in new)
        if one is not None and running and not one.has_begun:
            one.unmet += running
            held += [one] if one is not job else []
    return held


def leave(core: Core, key: JobKey) -> None:
    """Take a job that has not run out of its ``runone`` set."""
    for rival in rivals(core, key):
        _keep(
            core, rival, [each for each in core.children.get(rival, ()) if each != (RUN_ONE, key)]
        )
    _keep(core, key, [each for each in core.children.get(key, ()) if each[0] != RUN_ONE])


def _keep(core: Core, key: JobKey, waiting: list[tuple[str, JobKey]]) -> None:
    """Keep only these jobs waiting for another."""
    if waiting:
        core.children[key] = waiting
    else:
        core.children.pop(key, None)


def has_begun(core: Core, key: JobKey) -> bool:
    """Return whether a job runs; of an array, whether any of its jobs has started."""
    job = core.find(key)
    return job is not None and job.has_begun and not job.is_over


def forget(core: Core, job: BatchJob) -> None:
    """Remove the dependencies of a job, which is about to get others."""
    leave(core, job.key)
    for key, waiting in list(core.children.items()):
        _keep(core, key, [each for each in waiting if each[1] != job.key])


def refuse_cycle(core: Core, job: BatchJob | None, found: list[Dependency]) -> None:
    """Refuse dependencies by which a job would wait for itself, directly or through other jobs;
    nothing changes.

    ``job``: the job that gets them in place of those that it has; None for a new job.
    """
    others = [(key, core.find(key)) for kind, key in found if kind in BEFORE]
    targets = [key for key, other in others if other is not None and _can_wait(other)]
    if job is not None:
        targets.append(job.key)
    blocked = _blocked_by(core, targets)
    for kind, key in found:
        is_own = job is not None and key == job.key
        if (kind in AFTER and key in blocked and _already(core, kind, key) is None) or (
            kind != "on" and is_own
        ):
            name = core.id_of(key)
            raise Refusal(
                "bad-dependency",
                f"depend={kind}:{name}: the jobs would wait for each other for ever",
            )


def _can_wait(job: BatchJob) -> bool:
    return not job.is_over and not job.holds_hosts


def _blocked_by(core: Core, targets: list[JobKey]) -> dict[JobKey, None]:
    """Return these jobs and all that cannot end before them, because of dependencies or as jobs of
    arrays.

    An array that waits makes its jobs wait; a job that waits keeps its array from ending.
    """
    blocked: dict[JobKey, None] = {}
    todo, seen = list(targets), set[JobKey]()
    while todo:
        key = todo.pop()
        if key in seen:
            continue
        seen.add(key)
        more = [key]
        job = core.find(key)
        if job is not None and job.is_array:
            more += [each.key for each in core.members(job)]
        elif key.member >= 0:
            more.append(JobKey(key.sequence, ARRAY))
        for one in more:
            if one not in blocked:
                blocked[one] = None
                todo += [child for _, child in core.children.get(one, ())]
    return blocked


def _already(core: Core, kind: str, key: JobKey) -> bool | None:
    """Return whether a dependency is met (True), can never be met (False) or is open (None)."""
    parent = core.find(key)
    if parent is not None and not parent.is_over:
        return True if kind == "after" and (parent.has_begun or parent.attempts > 0) else None
    status = core.endings.get(key)
    if status is None:
        record = core.recent.get(key)
        status = record.exit_status if record is not None else None
        if parent is not None and parent.final is not None:
            status = parent.final.status
    return _is_met(kind, status or 0)


def _is_met(kind: str, status: int) -> bool:
    return kind in ("after", "afterany") or (status == 0) == (kind == "afterok")


def started(core: Core, key: JobKey) -> list[JobKey]:
    """Return the jobs with an ``after`` that the start of this job meets."""
    waiting = core.children.get(key)
    if not waiting:
        return []
    core.children[key] = [each for each in waiting if each[0] != "after"]
    return [child for kind, child in waiting if kind == "after"]


def ended(
    core: Core, key: JobKey, status: int, *, is_aborted: bool = False
) -> tuple[list[JobKey], list[Doomed]]:
    """Return the jobs with a dependency that the end of this job meets, and those with one that can
    no longer be met.

    ``is_aborted``: the job ends because its own dependency cannot be met; then no dependency on it
    is met, not even ``afterany`` (OpenPBS req_register.c, depend_on_term).
    """
    met: list[JobKey] = []
    doomed: list[Doomed] = []
    for kind, child in core.children.pop(key, ()):
        if kind == RUN_ONE:
            doomed.append(
                (child, f"only one job of its set runs (depend=runone), and {core.id_of(key)} has")
            )
        elif kind != "after" and not is_aborted and _is_met(kind, status):
            met.append(child)
        else:
            doomed.append(
                (
                    child,
                    f"dependency {kind}:{core.id_of(key)} can never be met: it ended with {status}",
                )
            )
    return met, doomed
