"""The states of a job and the legal transitions between them, as one table; it knows neither time,
hosts nor policies.

``TRANSITIONS`` contains everything that may happen to a job's state; the engine refuses what is not
there.  A job is QUEUED when it waits, also after a trial run; RUNNING while it holds processors;
SUSPENDED when it has run, holds no processors and may hold its memory.  The other three states are
ends.  ``qbatch states`` prints the diagram.
"""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """The state of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    SUSPENDED = "suspended"
    FINISHED = "finished"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


TRANSITIONS: dict[tuple[State | None, str], State] = {
    (None, "submitted"): State.QUEUED,
    (State.QUEUED, "start"): State.RUNNING,
    (State.QUEUED, "reject"): State.REJECTED,
    (State.QUEUED, "withdrawn"): State.WITHDRAWN,
    (State.RUNNING, "finished"): State.FINISHED,
    (State.RUNNING, "suspend"): State.SUSPENDED,
    (State.RUNNING, "resize"): State.RUNNING,
    (State.RUNNING, "returned"): State.QUEUED,
    (State.SUSPENDED, "resume"): State.RUNNING,
    (State.SUSPENDED, "resize"): State.SUSPENDED,
    (State.SUSPENDED, "withdrawn"): State.WITHDRAWN,
}
"""From a state, by an event (past participle) or an action (imperative), to a state."""

STATES = tuple(State)
CODES = {state: code for code, state in enumerate(STATES)}
"""The code of each state in arrays, one byte."""

NEXT: dict[str, tuple[int, ...]] = {
    cause: tuple(
        CODES[TRANSITIONS[state, cause]] if (state, cause) in TRANSITIONS else -1
        for state in STATES
    )
    for _, cause in TRANSITIONS
}
"""The same table in codes: by cause, the state after each state, -1 if it is not allowed."""

ENDS = frozenset(state for state in State if all(source is not state for source, _ in TRANSITIONS))
"""The states that no job leaves."""


def diagram(style: str = "text") -> str:
    """Return the table as a diagram: ``text``, ``mermaid`` or ``dot``."""
    edges = [
        (source.value if source else "", cause, target.value)
        for (source, cause), target in TRANSITIONS.items()
    ]
    if style == "mermaid":
        lines = ["stateDiagram-v2"]
        lines += [f"    {source or '[*]'} --> {target}: {cause}" for source, cause, target in edges]
        lines += [f"    {end.value} --> [*]" for end in State if end in ENDS]
        return "\n".join(lines)
    if style == "dot":
        lines = ["digraph states {", '    "" [shape=point];']
        lines += [
            f'    "{source}" -> "{target}" [label="{cause}"];' for source, cause, target in edges
        ]
        return "\n".join([*lines, "}"])
    lines = []
    for state in (None, *State):
        for source, cause, target in edges:
            if source == (state.value if state else ""):
                end = " (end)" if State(target) in ENDS else ""
                lines.append(f"{source or 'o':>10} --{cause:-<12}> {target}{end}")
    return "\n".join(lines)
