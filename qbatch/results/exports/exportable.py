"""What is exported: a result, where its jobs ran if that is known, and its log form if there is a better one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from qbatch.model.errors import UsageError
from qbatch.model.record import Schedule
from qbatch.results.result import Result


class ExportedBar(NamedTuple):
    """A piece of a job on one host: ``row`` is the job's in the schedule, times in microseconds.

    A job on several hosts, or one that was suspended in between, is several bars.
    """

    row: int
    host: str
    begin: int
    end: int
    procs: int


@dataclass(frozen=True, slots=True)
class Exportable:
    """A result to be exported.  ``bars``, by policy: where the jobs ran; without, all hosts are taken for one machine.

    ``write_swf`` writes the log where more is known of the jobs than job rows hold; ``swf_keeps`` and ``swf_loses`` say what
    that log tells of jobs that ran in pieces.
    """

    result: Result
    bars: Mapping[str, Sequence[ExportedBar]] = field(default_factory=dict)
    write_swf: Callable[[BinaryIO], None] | None = None
    swf_keeps: str = ""
    swf_loses: str = ""

    def bars_of(self, schedule: Schedule) -> Sequence[ExportedBar]:
        """Return the bars of one policy's jobs; of jobs whose hosts are not known, one for each piece on ``machine``."""
        if schedule.policy in self.bars:
            return self.bars[schedule.policy]
        spans = schedule.spans()
        columns = zip(*(column.tolist() for column in (spans.job, spans.begin, spans.end, spans.procs)), strict=True)
        return [ExportedBar(row, "machine", begin, end, procs) for row, begin, end, procs in columns]

    def one_policy(self, form: str) -> Schedule:
        """Return what ran under the only policy.

        Raises:
            UsageError: if there are several, and ``form`` holds one schedule.
        """
        if len(self.result.schedules) != 1:
            called, known = self.result.called, ", ".join(self.result.policies)
            raise UsageError(f"{form} holds one schedule, {called} has several: name one --policy ({known})")
        return self.result.schedules[0].only_ran()
