"""``qbatch replay --source``: run policies on the jobs of a model that reacts to the schedule."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from qbatch.cli.replay_outputs import Shown, check_outputs, check_rejections, print_record, write_outputs
from qbatch.library.progress import progress_bars
from qbatch.model.errors import UsageError

if TYPE_CHECKING:
    from qbatch.model.record import Schedule
    from qbatch.planning.policy import Policy


def replay_source(
    text: str, policies: list[str], others: dict[str, Any], *, machine: str | None, seed: int, shown: Shown
) -> None:
    """Run policies on a source and print the record; ``others`` are options that only a log can have.

    Raises:
        UsageError: one of those options was given, or the source cannot be parsed.
    """
    from qbatch.library.experiment import distinct, document_of
    from qbatch.policies import load_policy
    from qbatch.simulation.prepare import Options
    from qbatch.workloads.machines import load_machine
    from qbatch.workloads.network import read_network

    given = ", ".join(name for name, value in others.items() if value)
    if given:
        raise UsageError(f"--source {text}: a source generates its jobs itself; leave out {given}")
    check_outputs(None, shown.out, shown.jobs, None, None, policies)
    network = read_network(text)
    hosts = network.machine() if machine is None else load_machine(machine)
    chosen = distinct([load_policy(each) for each in policies])
    if shown.driver == "compiled":
        raise UsageError("--driver compiled: only the engine can run a source; leave it out")
    schedules = [_run(network, seed, hosts, each, is_audited=shown.is_audited, is_quiet=shown.is_quiet) for each in chosen]
    work = schedules[0].workload
    log = {"name": network.name, "sha256": None, "rows": len(work), "jobs": len(work), "notes": list[str]()}
    facts = {"source": network.name, "options": {}}  # none of them applies to a source
    command = ["qbatch", *sys.argv[1:]]
    document = document_of(log, work, hosts, Options(seed=seed, kill=False), schedules, shown.by, facts, command)
    write_outputs(document, schedules, out=shown.out, jobs=shown.jobs)
    print_record(document, shown)
    check_rejections(schedules, is_quiet=shown.is_quiet)


def _run(network: Any, seed: int, machine: Any, policy: Policy, *, is_audited: bool, is_quiet: bool) -> Schedule:
    from qbatch.planning.policy import name_of
    from qbatch.simulation import run
    from qbatch.simulation.network import NetworkSource

    source = NetworkSource(network, seed)
    with progress_bars(name_of(policy), 0, 0, network.horizon, is_quiet=is_quiet) as progress:
        return run(source, machine, policy, is_audited=is_audited, progress=progress)
