"""Who may join the queue at all: what can never run is refused at submission, with the reason."""

from __future__ import annotations

from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.reasons import Reason


def refusal(machine: Machine, job: Job) -> Reason | None:
    """Return why a job can never run on the machine, or None if it can."""
    if job.procs < 1:
        return Reason("no-processors", "admission", f"asks for {job.procs} processors; ask for at least 1")
    if job.estimate < 0:
        return Reason("negative-estimate", "admission", f"its estimate of {job.estimate / 1e6:.15g} s is negative")
    where = "one host; the largest host has" if machine.single_host else "the machine;"
    if job.procs > machine.widest_job:
        return Reason(
            "too-wide",
            "admission",
            f"needs {job.procs} processors on {where} {machine.widest_job}"
            + ("" if machine.single_host else " are there"),
            {"procs": job.procs, "widest": machine.widest_job},
        )
    if machine.counts_memory and not any(
        host.cpus >= job.procs and (host.memory == 0 or host.memory >= job.memory) for host in machine.hosts
    ):
        return Reason(
            "too-much-memory",
            "admission",
            f"needs {job.procs} processors and {job.memory} bytes of memory on one host; no host has both",
            {"procs": job.procs, "memory": job.memory},
        )
    return None
