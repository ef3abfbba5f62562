"""What a job asks for: the options of `sbatch` as the controller sees them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

from tests.policies.slurm_oracle import site as sites


@dataclass
class Request:
    """One job's wishes. `minimum_nodes`, `maximum_nodes` and the processors follow the rules of `derive`."""

    options: dict[str, str]
    user: str
    account: str
    partitions: list[str]
    qos: str
    minimum_nodes: int
    maximum_nodes: int | None
    tasks: int
    tasks_given: bool
    tasks_per_node: int
    cpus_per_task: int
    minimum_cpus: int
    cpus_on_node: int
    memory_per_node: int | None
    memory_per_cpu: int | None
    all_memory: bool
    gpus_per_node: int
    gpus_per_job: int
    gpus_per_task: int
    limit: int | None
    licenses: dict[str, int]
    features: str
    exclusive: bool
    by_user: bool
    required_nodes: list[str]
    excluded_nodes: list[str]
    spread: bool
    reservation: str | None
    nice: int
    hold: bool
    requeue: bool | None
    begin: str | None
    dependency: str | None
    array: str | None
    name: str
    kill_on_invalid_dependency: bool = False
    extras: dict[str, str] = field(default_factory=dict)


def parse(command: str) -> dict[str, str]:
    """The options of a line `sbatch --a=b --c`; a flag has the value ''."""
    result = {}
    for token in shlex.split(command)[1:]:
        match = re.fullmatch(r"--([a-z-]+)(?:=(.*))?", token, re.S)
        if match:
            result[match[1]] = match[2] if match[2] is not None else ""
    return result


def number_of_nodes(text: str) -> tuple[int, int]:
    """--nodes=2 or --nodes=2-4 as minimum and maximum."""
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def derive(command: str, user: str, site: sites.Site) -> Request:
    """What the controller makes of an `sbatch` line [sbatch(1), `job_create`].

    - Without --nodes a job asks for at least one node and has no greatest number.
    - With fewer tasks than nodes, sbatch lowers the number of nodes to the number of tasks.
    - --ntasks-per-node without --ntasks: tasks = nodes * tasks per node.
    - Processors = tasks * processors per task; on each node at least tasks per node * processors per task.
    """
    options = parse(command)
    per_task = int(options.get("cpus-per-task", "1"))
    per_node = int(options.get("ntasks-per-node", "0"))
    minimum, maximum = 1, None
    if "nodes" in options:
        minimum, maximum = number_of_nodes(options["nodes"])
    given = "ntasks" in options
    if given:
        tasks = int(options["ntasks"])
        if "nodes" in options and tasks < minimum:
            minimum = tasks
            if maximum is not None and minimum > maximum:
                maximum = minimum
            maximum = min(maximum, tasks) if maximum is not None else None
    elif per_node:
        tasks = minimum * per_node
    else:
        tasks = minimum
    account = options.get("account") or site.default_account.get(user, "")
    own = site.associations.get((account, user))
    names = options.get("partition") or site.default_partition.name
    partitions = names.split(",")
    first = site.partitions.get(partitions[0], site.default_partition)
    memory_node: int | None = None
    memory_cpu: int | None = None
    everything = False
    if "mem" in options:
        memory_node = megabytes(options["mem"])
        everything = memory_node == 0
    elif "mem-per-cpu" in options:
        memory_cpu = megabytes(options["mem-per-cpu"])
    elif site.counts_memory and first.default_memory_per_cpu:
        memory_cpu = first.default_memory_per_cpu
    features = options.get("constraint", "")
    exclusive = "exclusive" in options
    return Request(
        options,
        user,
        account,
        partitions,
        options.get("qos") or (own and own.inherited("defaultqos")) or "normal",
        minimum,
        maximum,
        tasks,
        given,
        per_node,
        per_task,
        tasks * per_task,
        max(per_task, per_node * per_task),
        memory_node,
        memory_cpu,
        everything,
        gpu_count(options.get("gres", "")) or gpu_count("gpu:" + options["gpus-per-node"])
        if "gpus-per-node" in options or "gres" in options
        else 0,
        int(options.get("gpus", "0")),
        int(options.get("gpus-per-task", "0")),
        sites.minutes(options["time"]) if "time" in options else None,
        license_counts(options.get("licenses", "")),
        features,
        exclusive and options["exclusive"] != "user",
        exclusive and options["exclusive"] == "user",
        sites.expand(options.get("nodelist", "")),
        sites.expand(options.get("exclude", "")),
        "spread-job" in options,
        options.get("reservation") or None,
        int(options.get("nice", "0")),
        "hold" in options,
        True if "requeue" in options else False if "no-requeue" in options else None,
        options.get("begin"),
        options.get("dependency"),
        options.get("array"),
        options.get("job-name", ""),
        options.get("kill-on-invalid-dep", "no") == "yes",
    )


def megabytes(text: str) -> int:
    """A size of memory in MB; a bare number is MB."""
    match = re.fullmatch(r"(\d+)([KMGT]?)", text.upper())
    assert match, text
    factor = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024 * 1024}[match[2]]
    return int(int(match[1]) * factor)


def gpu_count(text: str) -> int:
    """gpu:2 or gpu:a100:2 or gpu as a count; 0 if there is no GPU in it."""
    match = re.search(r"gpu(?::[a-z]\w*)?(?::(\d+))?", text)
    return int(match[1] or "1") if match else 0


def license_counts(text: str) -> dict[str, int]:
    """matlab:2,ansys as counts."""
    result = {}
    for item in text.split(","):
        if item:
            name, _, count = item.partition(":")
            result[name] = int(count or "1")
    return result


def feature_match(expression: str, features: frozenset[str]) -> bool:
    """True if a node with these features satisfies a list of features joined by & or by |."""
    if not expression:
        return True
    if "|" in expression:
        return any(feature_match(part, features) for part in expression.split("|"))
    return all(part in features for part in expression.split("&"))
