"""The input of an export: a result, the places of its jobs if they are known, and a better log form
if there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from qbatch.model.errors import UsageError
from qbatch.model.record import Schedule
from qbatch.results.result import Result


class ExportedBar(NamedTuple):
    """An execution interval of a job on one host: ``row`` is the job's in the schedule, times in
    microseconds.

    A job on several hosts, or one that was suspended in between, is several bars.
    """

    row: int
    host: str
    begin: int
    end: int
    procs: int


@dataclass(frozen=True, slots=True)
class Exportable:
    """A result to be exported.  ``bars``, by policy: the places of the jobs; without them, all
    hosts count as one machine.

    ``write_swf`` writes the log if more is known of the jobs than job rows hold; ``swf_keeps`` and
    ``swf_loses`` describe what that log keeps and loses of jobs with several execution intervals.
    """

    result: Result
    bars: Mapping[str, Sequence[ExportedBar]] = field(default_factory=dict)
    write_swf: Callable[[BinaryIO], None] | None = None
    swf_keeps: str = ""
    swf_loses: str = ""

    def bars_of(self, schedule: Schedule) -> Sequence[ExportedBar]:
        """Return the bars of one policy's jobs; if their hosts are unknown, one for each execution
        interval on ``machine``."""
        if schedule.policy in self.bars:
            return self.bars[schedule.policy]
        spans = schedule.spans()
        columns = zip(
            *(column.tolist() for column in (spans.job, spans.begin, spans.end, spans.procs)),
            strict=True,
        )
        return [
            ExportedBar(row, "machine", begin, end, procs) for row, begin, end, procs in columns
        ]

    def one_policy(self, form: str) -> Schedule:
        """Return the jobs that ran under the only policy.

        Raises:
            UsageError: there are several, and ``form`` holds one schedule.
        """
        if len(self.result.schedules) != 1:
            called, known = self.result.called, ", ".join(self.result.policies)
            raise UsageError(
                f"{form} holds one schedule, {called} has several: name one --policy ({known})"
            )
        return self.result.schedules[0].only_ran()
