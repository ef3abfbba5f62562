"""Thirty operations against a daemon in virtual time that stands still: the same ones each time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from qbatch.client import ClientSession
from qbatch.model.errors import QbatchError
from qbatch.wire.records import ClockRecord, Done, Outcomes, SubmissionRecord
from qbatch.wire.requests import (
    Alter,
    Backup,
    Changes,
    Delete,
    Fault,
    Hold,
    QueueControl,
    Release,
    Request,
    Shutdown,
    Spec,
    Submit,
    Time,
    Upload,
    Wait,
)
from tests.daemon.harness import emulated

CONFIG = emulated(
    "n[1-2]",
    queues="""
[[queue]]
name = "narrow"
max_running = 1
""",
)


def _submit(name: str, **fields: Any) -> Submit:
    return Submit(key=name, spec=Spec(script="sleep 60\n", name=name, **fields))


def operations(backup: str) -> Iterator[tuple[str, Request, type]]:
    """Yield (name, request, kind of result): submissions, arrays, holds, deletes, ends, a copy, the
    shutdown."""
    yield "one", _submit("one", resources={"ncpus": "4"}), SubmissionRecord
    yield "two", _submit("two", resources={"ncpus": "4"}, runtime=200_000_000), SubmissionRecord
    yield "three", _submit("three"), SubmissionRecord
    yield "array", _submit("array", array="1-6%2"), SubmissionRecord
    yield "held", _submit("held", hold="u"), SubmissionRecord
    yield "hold three", Hold(jobs=("3",)), Outcomes
    yield "child", _submit("child", depend="afterok:1"), SubmissionRecord
    yield "narrow", _submit("narrow", queue="narrow"), SubmissionRecord
    yield "narrower", _submit("narrower", queue="narrow"), SubmissionRecord
    yield "play", Time(action="until-count", count=1), ClockRecord
    yield "end of one", Wait(jobs=("1",), timeout=30.0), Outcomes
    yield "delete", Delete(jobs=("2",)), Outcomes
    yield "release", Release(jobs=("5",)), Outcomes
    yield "alter", Alter(jobs=("3",), changes=Changes(name="renamed", priority=7)), Outcomes
    yield "stop queue", QueueControl(queues=("narrow",), started=False), Outcomes
    yield "fault", Fault(kind="submit-refused", count=1, pattern="refused"), Done
    yield "refused", _submit("refused"), SubmissionRecord
    yield "not refused", _submit("refused-not"), SubmissionRecord
    yield "many", _submit("many", array="1-40"), SubmissionRecord
    yield "delete subjob", Delete(jobs=("4[3]",)), Outcomes
    yield "backup", Backup(path=backup), Done
    yield "play on", Time(action="until-count", count=3), ClockRecord
    yield "end of child", Wait(jobs=("6",), timeout=30.0), Outcomes
    yield "start queue", QueueControl(queues=("narrow",), started=True), Outcomes
    yield "forced", Delete(jobs=("9",), is_forced=True), Outcomes
    yield "release three", Release(jobs=("3",)), Outcomes
    yield (
        "big",
        Submit(key="big", spec=Spec(script="sleep 1\n" * 8000, name="big")),
        SubmissionRecord,
    )
    yield "play more", Time(action="until-count", count=10), ClockRecord
    yield "last", _submit("last"), SubmissionRecord
    yield "shutdown", Shutdown(), Done


def real_jobs(mark: str) -> Iterator[tuple[str, Request, type]]:
    """Yield operations with three scripts that run for real, one after the other, the last one sent
    ahead as long ones are.

    Each appends its name to the file ``mark`` and ends with a code of its own.
    """
    for number, name in enumerate(("first", "second", "third"), start=1):
        spec = Spec(
            script=f"echo {name} >> {mark}\nexit {number}\n", name=name, is_rerunnable=False
        )
        if name == "third":
            content = spec.script.encode()
            digest = hashlib.sha256(content).hexdigest()
            yield (
                "upload",
                Upload(upload="0123456789abcdef", offset=0, data=content, digest=digest),
                Done,
            )
            spec = replace(spec, script="", script_digest=digest)
        yield name, Submit(key=name, spec=spec), SubmissionRecord
        yield f"end of {name}", Wait(jobs=(str(number),), timeout=60.0), Outcomes
    yield "shutdown", Shutdown(), Done


def carry_out(path: str, asked: Iterable[tuple[str, Request, type]]) -> list[tuple[str, str, str]]:
    """Carry operations out until all are done or the daemon has gone; return (asked, done or
    refused; name; job or code)."""
    said: list[tuple[str, str, str]] = []
    with ClientSession(path, timeout=30.0, patience=0.0) as session:
        for name, request, kind in asked:
            said.append(("asked", name, ""))
            try:
                result = session.ask(request, kind)
            except QbatchError as error:
                code = getattr(error, "code", "")
                if not code or code == "stopping":
                    break
                said.append(("refused", name, code))
                continue
            said.append(("done", name, getattr(result, "job", "")))
    return said
