"""Reads the files of a Slurm site: slurm.conf, gres.conf and the commands of sacctmgr that set it up."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

UNLIMITED = 10**9


@dataclass
class Node:
    """One node as slurm.conf describes it. Memory is in MB."""

    name: str
    index: int
    cpus: int
    memory: int
    weight: int
    features: frozenset[str]
    gpus: int


@dataclass
class Partition:
    """One partition. Times are in minutes."""

    name: str
    nodes: frozenset[int]
    default: bool
    tier: int
    job_factor: int
    max_time: int
    default_time: int | None
    max_nodes: int
    min_nodes: int
    default_memory_per_cpu: int | None
    preempt_mode: str | None
    grace_time: int
    oversubscribe: str
    qos: str | None


@dataclass
class Qos:
    """One quality of service with its limits, as `sacctmgr add qos` set them."""

    name: str
    values: dict[str, str] = field(default_factory=dict)

    def number(self, key: str) -> int | None:
        """The whole number of a limit such as MaxJobsPU, or None."""
        text = self.values.get(key.lower())
        return None if text is None else int(text)

    def amounts(self, key: str) -> dict[str, int]:
        """The amounts of a limit such as MaxTRESPU=cpu=12."""
        return amounts(self.values.get(key.lower(), ""))

    @property
    def priority(self) -> int:
        """The priority of the QOS; 0 if none was set."""
        return self.number("priority") or 0

    @property
    def flags(self) -> set[str]:
        """The flags in lower case."""
        return {flag.strip().lower() for flag in self.values.get("flags", "").split(",") if flag}


@dataclass
class Association:
    """One account, or one user within an account, of the tree of associations."""

    account: str
    user: str | None
    parent: Association | None
    shares: int
    shares_of_parent: bool
    values: dict[str, str] = field(default_factory=dict)
    children: list[Association] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str | None]:
        """Account and user."""
        return (self.account, self.user)

    def number(self, key: str) -> int | None:
        """The whole number of a limit, or None."""
        text = self.values.get(key.lower())
        return None if text is None else int(text)

    def amounts(self, key: str) -> dict[str, int]:
        """The amounts of a limit such as GrpTRES=cpu=20."""
        return amounts(self.values.get(key.lower(), ""))

    def inherited(self, key: str) -> str | None:
        """A limit of Max...: its own, or that of the nearest account above which has one."""
        return next((item.values[key] for item in self.path() if key in item.values), None)

    def path(self) -> list[Association]:
        """This association and all above it, up to the root."""
        result: list[Association] = [self]
        while result[-1].parent is not None:
            result.append(result[-1].parent)
        return result


@dataclass
class Site:
    """All that the files of a site say."""

    settings: dict[str, str]
    nodes: list[Node]
    partitions: dict[str, Partition]
    licenses: dict[str, int]
    qos: dict[str, Qos]
    root: Association
    associations: dict[tuple[str, str | None], Association]
    default_account: dict[str, str]

    @property
    def scheduler(self) -> dict[str, str]:
        """SchedulerParameters by name; a flag has the value ''."""
        items = [
            item.partition("=")
            for item in self.settings.get("schedulerparameters", "").split(",")
            if item
        ]
        return {name.strip().lower(): value.strip() for name, _, value in items}

    def setting(self, name: str, default: str = "") -> str:
        """One setting of slurm.conf by its name."""
        return self.settings.get(name.lower(), default)

    @property
    def counts_memory(self) -> bool:
        """True if memory is consumed (CR_Core_Memory and alike)."""
        return "memory" in self.setting("SelectTypeParameters").lower()

    @property
    def enforce(self) -> set[str]:
        """What AccountingStorageEnforce names."""
        return {
            word.strip().lower()
            for word in self.setting("AccountingStorageEnforce").split(",")
            if word
        }

    @property
    def default_partition(self) -> Partition:
        """The partition that jobs go to if they name none."""
        return next(part for part in self.partitions.values() if part.default)

    def node_indices(self, names: str) -> list[int]:
        """The indices of a list such as n[1-4,7], in the order of the file. ALL stands for every node."""
        if names.upper() == "ALL":
            return [node.index for node in self.nodes]
        wanted = set(expand(names))
        return [node.index for node in self.nodes if node.name in wanted]

    def node_list(self, indices: set[int] | frozenset[int] | list[int]) -> str:
        """The names of nodes in Slurm's short form, as logs print them."""
        return compress([self.nodes[index].name for index in sorted(indices)])


def amounts(text: str) -> dict[str, int]:
    """cpu=12,node=1 as a dictionary."""
    result = {}
    for item in text.split(","):
        name, _, value = item.partition("=")
        if value:
            result[name.strip().lower()] = int(value)
    return result


def expand(names: str) -> list[str]:
    """n[1-3,5],m1 as a list of names."""
    result = []
    for item in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", names):
        match = re.fullmatch(r"([^\[]+)\[([^\]]*)\]", item)
        if not match:
            result.append(item)
            continue
        for piece in match[2].split(","):
            low, _, high = piece.partition("-")
            result.extend(
                f"{match[1]}{number:0{len(low)}d}"
                for number in range(int(low), int(high or low) + 1)
            )
    return result


def compress(names: list[str]) -> str:
    """A list of names with a common prefix as n[1-3,5]; an empty list is ''."""
    if len(names) <= 1:
        return "".join(names)
    prefix = re.sub(r"\d+$", "", names[0])
    numbers = [int(name[len(prefix) :]) for name in names]
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return prefix + "[" + ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges) + "]"


def minutes(text: str) -> int:
    """A time limit of Slurm (minutes, m:s, h:m:s, d-h, d-h:m, d-h:m:s) in minutes, rounded up."""
    if text.lower() in ("infinite", "unlimited", "-1"):
        return UNLIMITED
    days, dash, rest = text.partition("-")
    parts = [int(part) for part in (rest if dash else text).split(":")]
    if dash:
        hours, mins, secs = [*parts, 0, 0][:3]
        seconds = ((int(days) * 24 + hours) * 60 + mins) * 60 + secs
    elif len(parts) == 1:
        seconds = parts[0] * 60
    elif len(parts) == 2:
        seconds = parts[0] * 60 + parts[1]
    else:
        seconds = (parts[0] * 60 + parts[1]) * 60 + parts[2]
    return -(-seconds // 60)


def seconds(text: str) -> int:
    """A period of slurm.conf such as 0:05:00 or 7-0 in seconds; a bare number is minutes."""
    days, dash, rest = text.partition("-")
    parts = [int(part) for part in (rest if dash else text).split(":")]
    if dash:
        hours, mins, secs = [*parts, 0, 0][:3]
        return ((int(days) * 24 + hours) * 60 + mins) * 60 + secs
    if len(parts) == 1:
        return parts[0] * 60
    if len(parts) == 2:
        return parts[0] * 60 + parts[1]
    return (parts[0] * 60 + parts[1]) * 60 + parts[2]


def words(line: str) -> dict[str, str]:
    """The key=value pairs of a line of slurm.conf, keys in lower case."""
    return {key.lower(): value for key, value in re.findall(r"(\w+)=(\S+)", line)}


def read_site(folder: Path) -> Site:
    """Reads slurm.conf, gres.conf and the sacctmgr files of a folder.

    Associations come from sacctmgr.dump. QOS come from sacctmgr.sh, since a dump has no QOS and the table of `sacctmgr
    show qos` leaves out MaxTRESRunMinsPU and MaxJobsAccruePU.
    """
    settings: dict[str, str] = {}
    nodes: list[Node] = []
    partition_lines: list[dict[str, str]] = []
    for line in (folder / "slurm.conf").read_text().splitlines():
        pairs = words(line)
        if "nodename" in pairs:
            for name in expand(pairs["nodename"]):
                gpus = re.search(r"gpu(?::\w+)?:(\d+)", pairs.get("gres", ""))
                nodes.append(
                    Node(
                        name,
                        len(nodes),
                        int(pairs.get("cpus", "1")),
                        int(pairs.get("realmemory", "1")),
                        int(pairs.get("weight", "1")),
                        frozenset(pairs.get("feature", pairs.get("features", "")).split(","))
                        - {""},
                        int(gpus[1]) if gpus else 0,
                    )
                )
        elif "partitionname" in pairs:
            partition_lines.append(pairs)
        elif "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            settings[key.strip().lower()] = value.strip()
    site = Site(settings, nodes, {}, {}, {}, Association("root", None, None, 1, False), {}, {})
    for pairs in partition_lines:
        site.partitions[pairs["partitionname"]] = _partition(site, pairs)
    for item in settings.get("licenses", "").split(","):
        if item:
            name, _, count = item.partition(":")
            site.licenses[name] = int(count or "1")
    _read_dump(site, folder / "sacctmgr.dump")
    _read_qos(site, folder / "sacctmgr.sh")
    return site


def _partition(site: Site, pairs: dict[str, str]) -> Partition:
    default_memory = pairs.get("defmempercpu") or site.settings.get("defmempercpu")
    return Partition(
        pairs["partitionname"],
        frozenset(site.node_indices(pairs["nodes"])),
        pairs.get("default", "NO").upper() == "YES",
        int(pairs.get("prioritytier", "1")),
        int(pairs.get("priorityjobfactor", "1")),
        minutes(pairs.get("maxtime", "UNLIMITED")),
        minutes(pairs["defaulttime"]) if "defaulttime" in pairs else None,
        int(pairs.get("maxnodes", str(UNLIMITED))),
        int(pairs.get("minnodes", "0")),
        int(default_memory) if default_memory else None,
        pairs["preemptmode"].upper() if "preemptmode" in pairs else None,
        int(pairs.get("gracetime", "0")),
        pairs.get("oversubscribe", "NO").upper(),
        pairs.get("qos"),
    )


def _read_dump(site: Site, path: Path) -> None:
    """Associations in the order of the dump: `Parent - 'a'` is followed by its users and accounts."""
    site.associations[site.root.key] = site.root
    parent = site.root
    for line in path.read_text().splitlines():
        match = re.match(r"(Parent|User|Account) - '([^']*)':?(.*)", line)
        if not match:
            continue
        kind, name, rest = match.groups()
        values = {
            key.lower(): value.strip("'")
            for key, value in re.findall(r"(\w+)=('[^']*'|[^:]*)", rest)
        }
        if kind == "Parent":
            parent = site.associations[(name, None)]
            continue
        shares = values.get("fairshare", "1")
        of_parent = shares.lower() == "parent" or shares == "2147483647"
        child = Association(
            name if kind == "Account" else parent.account,
            None if kind == "Account" else name,
            parent,
            0 if of_parent else int(shares),
            of_parent,
            values,
        )
        parent.children.append(child)
        site.associations[child.key] = child
        if kind == "User":
            site.default_account.setdefault(name, values.get("defaultaccount", parent.account))


def _read_qos(site: Site, path: Path) -> None:
    site.qos["normal"] = Qos("normal")
    for line in path.read_text().splitlines():
        tokens = shlex.split(line)
        if tokens[:4] == ["sacctmgr", "-i", "add", "qos"]:
            site.qos[tokens[4]] = Qos(tokens[4], _qos_values(tokens[5:]))
        elif tokens[:4] == ["sacctmgr", "-i", "modify", "qos"]:
            start = tokens.index("set")
            for name in tokens[4].split(","):
                site.qos[name].values.update(_qos_values(tokens[start + 1 :]))


ALIASES = {
    "maxjobsperuser": "maxjobspu",
    "maxjobsperaccount": "maxjobspa",
    "maxtresperuser": "maxtrespu",
    "maxtresperaccount": "maxtrespa",
    "maxsubmitjobsperuser": "maxsubmitpu",
    "maxsubmitjobspu": "maxsubmitpu",
    "maxsubmitjobsperaccount": "maxsubmitpa",
    "maxsubmitjobspa": "maxsubmitpa",
    "maxtresperjob": "maxtres",
    "mintresperjob": "mintres",
    "maxtresrunminsperuser": "maxtresrunminspu",
    "maxwalldurationperjob": "maxwall",
}


def _qos_values(tokens: list[str]) -> dict[str, str]:
    values = {}
    for token in tokens:
        key, _, value = token.partition("=")
        values[ALIASES.get(key.lower(), key.lower())] = value
    return values
