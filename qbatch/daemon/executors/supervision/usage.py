"""What a job uses: processor time, memory and address space of its processes, measured now and
then.

Memory is the sum of the resident memory of the processes, as in PBS (mem_sum, resi_sum of its mom):
pages that they share count for each.  Processor time is that of the control group if there is one,
else of the process tree.
"""

from __future__ import annotations

import os

from . import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")

FIRST_LOOK, LAST_PAUSE, LIMITED_PAUSE = 0.1, 10.0, 1.0
"""Seconds until the first look, between looks in the end (each pause doubles), and at most if there
are limits."""

SLACK = 1 << 20
"""Bytes by which a child can grow between the fork and its script."""

CODES = {"cput": -28, "pcput": -28, "mem": -27, "vmem": -26}
"""Exit status of a job that exceeded a limit (PBS: JOB_EXEC_KILL_CPUT, _MEM, _VMEM)."""


class Meter:
    """The use of one job by the last look: ``cput`` and ``pcput`` in seconds, ``mem`` and ``vmem``
    in bytes, the maximum so far.

    ``limits``: the most that it may use, by the names of ``CODES``; ``leaf``: its control group, or
    nothing.
    """

    def __init__(self, limits: dict[str, float], leaf: str, now: float) -> None:
        self.limits, self.leaf = (
            {name: float(limits[name]) for name in CODES if name in limits},
            leaf,
        )
        self.cput, self.pcput, self.mem, self.vmem = 0.0, 0.0, 0, 0
        self.pause = FIRST_LOOK
        self.due = now + self.pause

    def look(self, now: float, collected: float) -> tuple[str, str]:
        """Look at the processes; return the limit that is exceeded and PBS's words for it, or two
        empty texts.

        ``collected``: processor seconds of the processes that have ended and were waited for.
        """
        self.pause = min(self.pause * 2, LIMITED_PAUSE if self.limits else LAST_PAUSE)
        self.due = now + self.pause
        cput, mem, vmem, most = collected, 0, 0, 0.0
        for pid in tree_of(os.getpid()):
            found = _read(pid)
            if found is not None:
                own, with_children, size, resident = found
                cput, mem, vmem, most = (
                    cput + with_children,
                    mem + resident,
                    vmem + size,
                    max(most, own),
                )
        self.note(max(cput, group_time(self.leaf)), mem, vmem)
        self.pcput = max(self.pcput, most)
        for name, limit in self.limits.items():
            use = {"cput": self.cput, "pcput": most, "mem": mem, "vmem": vmem}[name]
            if use > limit:
                return name, words(name, use, limit)
        return "", ""

    def note_ended(self, cput: float, peak: int) -> None:
        """Count the peak of a process that was waited for, if it is larger than this process.

        A smaller peak may be the memory that the child had of this process before it became the
        script.
        """
        own = _read(os.getpid())
        self.note(cput, peak if own is None or peak > own[3] + SLACK else 0, 0)

    def note(self, cput: float, mem: int, vmem: int) -> None:
        """Count other figures: the use never becomes less."""
        self.cput, self.mem = max(self.cput, cput), max(self.mem, mem)
        self.vmem = max(self.vmem, vmem, self.mem)

    def used(self) -> dict[str, object]:
        """Return the use as it is reported."""
        return {
            "cput": round(self.cput, 6),
            "pcput": round(self.pcput, 6),
            "mem": self.mem,
            "vmem": self.vmem,
        }


def words(name: str, used: float, limit: float) -> str:
    """Return what PBS writes into the error output of a job that it ends: times in seconds, sizes
    in kb, rounded up."""
    if name == "pcput":
        return f"pcput exceeded limit {limit:g}"
    if name in ("mem", "vmem"):
        return f"{name} {-(-int(used) // 1024)}kb exceeded limit {int(limit) // 1024}kb"
    return f"{name} {-int(-used // 1)} exceeded limit {limit:g}"


def tree_of(root: int) -> Iterable[int]:
    """Return the living descendants of a process, from the kernel's lists of children, which take
    time only for the tree."""
    found: list[int] = []
    waiting = [root]
    for pid in waiting:  # grows as we go
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as stream:
                    children = [int(child) for child in stream.read().split()]
                found += children
                waiting += children
        except FileNotFoundError:
            if pid == root:  # this kernel has no such lists
                return processes.descendants({root})
        except (OSError, ValueError):
            continue
    return found


def _read(pid: int) -> tuple[float, float, int, int] | None:
    """Return a process's processor seconds, these with those of the children that it waited for,
    its size and resident bytes."""
    fields = processes.stat_fields(pid)
    if not fields:
        return None
    user, system, child_user, child_system = map(int, fields[11:15])
    own = (user + system) / TICKS
    return own, own + (child_user + child_system) / TICKS, int(fields[20]), int(fields[21]) * PAGE


def group_time(leaf: str) -> float:
    """Return the processor time of a control group in seconds; 0 if it is not known."""
    if not leaf:
        return 0.0
    try:
        with open(f"{leaf}/cpu.stat", "rb", buffering=0) as stream:
            for line in stream.read().splitlines():
                name, _, value = line.partition(b" ")
                if name == b"usage_usec":
                    return int(value) / 1e6
    except (OSError, ValueError):
        pass
    return 0.0
