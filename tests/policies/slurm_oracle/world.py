"""The state of the simulated site: jobs, the cores they hold, and what is free."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.policies.slurm_oracle import requests
from tests.policies.slurm_oracle import site as sites

if TYPE_CHECKING:
    from tests.policies.slurm_oracle.nodes import Room
    from tests.policies.slurm_oracle.priority import Priorities
    from tests.policies.slurm_oracle.reservations import Reservation

PENDING, RUNNING, SUSPENDED, COMPLETING, DONE = (
    "pending",
    "running",
    "suspended",
    "completing",
    "done",
)


@dataclass
class Job:
    """One job, or one task of an array that has its own record, or the record of the tasks that still wait."""

    number: int
    request: requests.Request
    submit: float
    sequence: int
    state: str = PENDING
    priority: int = 0
    partition_priority: dict[str, int] = field(default_factory=dict)
    eligible: float = 0.0
    begin: int = 0
    held: bool = False
    held_by: str = ""
    limit: int = 0
    partition: str = ""
    start: int = 0
    end: int = 0
    started: float = 0.0
    cores: dict[int, frozenset[int]] = field(default_factory=dict)
    cpus: int = 0
    memory: dict[int, int] = field(default_factory=dict)
    gpus: dict[int, int] = field(default_factory=dict)
    released: float = 0.0
    planned: int = 0
    planned_nodes: str = ""
    reason: str = "None"
    nice: int = 0
    requeues: int = 0
    exit_code: int = 0
    preempt_time: int = 0
    grace_until: int = 0
    in_progress: bool = False
    suspended_at: int = 0
    independent: bool = False
    array: int = 0
    task: int | None = None
    waiting_tasks: list[int] = field(default_factory=list)
    task_limit: int = 0
    accrues: float = 0.0
    counted_until: int = 0
    printed: dict[str, list[str]] = field(default_factory=dict)
    reservation: str | None = None

    @property
    def limit_end(self) -> int:
        """The end by its limit, whatever a preemption shortened or a suspension moved."""
        return self.start + self.limit * 60

    @property
    def nodes(self) -> frozenset[int]:
        """The nodes it holds."""
        return frozenset(self.cores)

    @property
    def whole(self) -> bool:
        """True if it takes its nodes whole."""
        return self.request.exclusive

    @property
    def is_head(self) -> bool:
        """True for the record of the waiting tasks of an array."""
        return bool(self.waiting_tasks)


@dataclass
class World:
    """All jobs and nodes at one instant."""

    site: sites.Site
    jobs: dict[int, Job] = field(default_factory=dict)
    now: float = 0.0
    closed: set[int] = field(default_factory=set)
    weights: dict[int, tuple[int, int]] = field(default_factory=dict)
    priorities: Priorities | None = None
    task_numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    last_sequence: int = 0
    rooms: dict[int, Room] = field(default_factory=dict)
    preemptions: list[tuple[int, str, int]] = field(default_factory=list)
    reservations: dict[str, Reservation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Every node starts with its weight and no GPU counted."""
        self.weights = {node.index: (node.weight, 255) for node in self.site.nodes}

    @property
    def second(self) -> int:
        """The present whole second, as Slurm's time(NULL) gives it."""
        return int(self.now)

    def running(self) -> list[Job]:
        """Jobs that hold cores, in the order of the job list."""
        found = [job for job in self.jobs.values() if job.state in (RUNNING, SUSPENDED)]
        return sorted(found, key=lambda job: job.sequence)

    def pending(self) -> list[Job]:
        """Jobs that wait, in the order of the job list."""
        found = [job for job in self.jobs.values() if job.state == PENDING]
        return sorted(found, key=lambda job: job.sequence)

    def completing_nodes(self) -> set[int]:
        """Nodes on which an ended job has not yet been cleaned up."""
        return {
            node
            for job in self.jobs.values()
            if job.state == COMPLETING and self.now < job.released
            for node in job.cores
        }

    def licenses_free(self) -> dict[str, int]:
        """What is left of each licence."""
        free = dict(self.site.licenses)
        for job in self.running():
            for name, count in job.request.licenses.items():
                free[name] = free.get(name, 0) - count
        return free

    def licenses_fit(self, job: Job) -> bool:
        """True if the licences that a job asks for are free now."""
        free = self.licenses_free()
        return all(free.get(name, 0) >= count for name, count in job.request.licenses.items())
