"""The use of hosts: resources, partitions and what is free but of no use, compared with plain sums over
every instant."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qbatch.cli.main import run as command
from qbatch.library.on_hosts import held_on_hosts, resource_facts
from qbatch.model.job import FREE, SCATTER, SERVER, ChunkRequest, JobRequest
from qbatch.model.machine import EXCLUSIVE, Machine, expand_names
from qbatch.model.record import Schedule, Workload
from qbatch.planning.partitions import has_limits, partitions_of
from qbatch.policies import load_policy
from qbatch.simulation import run
from qbatch.simulation.prepare import in_partitions
from tests.policies.test_partitions import random_site, random_workload
from tests.referee.samples import OWN, Imported, imported, side_rows, write_side_rows


def side_request(rng: random.Random, machine: Machine) -> JobRequest:
    """Return a request as a side file says it."""
    nodes, gpus = rng.choice((1, 1, 1, 2, 3)), rng.choice((0, 1, 2))
    kind = rng.choice(("", "a", "b"))
    asked = {"gpu": gpus, f"gpu:{kind}": gpus} if kind else {"gpu": gpus}
    chunk = ChunkRequest(
        nodes,
        rng.randint(1, 3),
        rng.choice((0, 100, 400)),
        resources=tuple((name, amount) for name, amount in asked.items() if amount),
        features=("ib",) if rng.random() < 0.2 else (),
    )
    licence = ChunkRequest(1, 0, host=SERVER, resources=(("lic", 1),))
    return JobRequest(
        (chunk, licence) if machine.server >= 0 and rng.random() < 0.4 else (chunk,),
        SCATTER if nodes > 1 else FREE,
        rng.random() < 0.15,
        tuple(each.name for each in machine.partitions if rng.random() < 0.4),
    )


def site_work(rng: random.Random, machine: Machine) -> Workload:
    work = random_workload(rng, machine)
    requests = tuple(side_request(rng, machine) for _ in range(10))
    of = np.array([rng.randrange(-1, len(requests)) for _ in range(len(work))])
    bare = np.where(of < 0, 1, work.procs)
    if has_limits(machine):
        requests, of = in_partitions(machine, requests, of, bare, work.estimate)
    asked = [requests[kind] if kind >= 0 else None for kind in of.tolist()]
    names = dict.fromkeys(name for each in requests for name in each.resources)
    return work.changed(
        requests=requests,
        request=of,
        procs=np.array([1 if each is None else each.procs for each in asked]),
        memory=np.array([0 if each is None else each.memory for each in asked]),
        resources={
            name: np.array([0 if each is None else each.resources.get(name, 0) for each in asked])
            for name in names
        },
    )


class Plain:
    """A schedule on a machine as plain lists: what each job has on each host, and what it asks."""

    def __init__(self, done: Schedule, machine: Machine) -> None:
        work = done.workload
        self.machine, self.hosts = machine, machine.real_hosts
        self.names = [host.name for host in self.hosts]
        self.jobs: list[dict[str, Any]] = []
        assert done.hosts is not None
        for row in np.flatnonzero(done.ran).tolist():
            kind = int(work.request[row])
            request = work.requests[kind] if kind >= 0 else JobRequest((ChunkRequest(1, 1),))
            chunk = request.chunks[0]
            allowed = partitions_of(machine, request.partitions)
            self.jobs.append(
                {
                    "submit": int(work.submit[row]),
                    "start": int(done.start[row]),
                    "end": int(done.end[row]),
                    "on": [
                        self.names.index(name)
                        for part in done.hosts[row].split(",")
                        for name in expand_names(part)
                    ],
                    "each": {"processors": chunk.procs, "memory": chunk.memory}
                    | dict(chunk.resources),
                    "nodes": chunk.count,
                    "server": dict(request.chunks[1].resources) if len(request.chunks) > 1 else {},
                    "alone": request.is_exclusive or any(p.share == EXCLUSIVE for p in allowed),
                    "partitions": [each.name for each in allowed],
                    "may": [
                        (not allowed or any(place in each.hosts for each in allowed))
                        and set(chunk.features) <= set(host.features)
                        for place, host in enumerate(self.hosts)
                    ],
                }
            )
        instants = {job[key] for job in self.jobs for key in ("submit", "start", "end")}
        self.instants = sorted(instants)

    def there(self, name: str, host: int) -> int:
        each = self.hosts[host]
        known = {"processors": each.cpus, "memory": each.memory or 1 << 60}
        return (known | dict(each.resources)).get(name, 0)

    def held(self, job: dict[str, Any], name: str, host: int) -> int:
        if host not in job["on"]:
            return 0
        if name.startswith("gpu:"):  # every GPU of a host is of its type
            return self.held(job, "gpu", host) if self.there(name, host) else 0
        return self.there(name, host) if job["alone"] else job["each"].get(name, 0)

    def spans(self) -> Any:
        """Yield each span between two events, with the jobs that run and those that wait."""
        for begin, end in zip(self.instants, self.instants[1:], strict=False):
            runs = [job for job in self.jobs if job["start"] <= begin < job["end"]]
            waits = [job for job in self.jobs if job["submit"] <= begin < job["start"]]
            yield begin, end, runs, waits

    def free(self, runs: list[dict[str, Any]], name: str, host: int) -> int:
        return self.there(name, host) - sum(self.held(job, name, host) for job in runs)

    def unusable(self, name: str) -> Fraction:
        first, last = (f(job["submit"] for job in self.jobs) for f in (min, max))
        area = 0
        for begin, end, runs, waits in self.spans():
            span = max(0, min(end, last) - max(begin, first))
            asking = [job for job in waits if job["each"].get(name, 0)]
            for host in range(len(self.hosts)):
                may = [
                    job
                    for job in asking
                    if job["may"][host] and job["each"][name] <= self.free(runs, name, host)
                ]
                fits = [
                    job
                    for job in may
                    if all(a <= self.free(runs, n, host) for n, a in job["each"].items() if a)
                    and not (job["alone"] and any(host in other["on"] for other in runs))
                ]
                if may and not fits:
                    area += self.free(runs, name, host) * span
        return Fraction(area, last - first)

    def of_partition(self, hosts: tuple[int, ...], name: str, partition: str) -> list[Fraction]:
        """Return area held, utilisation and loss on the hosts of a partition."""
        first, last = (f(job["submit"] for job in self.jobs) for f in (min, max))
        there = sum(self.there(name, host) for host in hosts)
        held = inside = lost = 0
        for begin, end, runs, waits in self.spans():
            used = sum(self.held(job, name, host) for job in runs for host in hosts)
            held += used * (end - begin)
            inside += used * max(0, min(end, last) - max(begin, first))
            asking = [
                job["nodes"] * job["each"].get(name, 0)
                for job in waits
                if partition in job["partitions"]
            ]
            if any(0 < amount <= there - used for amount in asking):
                lost += (there - used) * (end - begin)
        whole = self.instants[-1] - first
        return [
            Fraction(held, 3600 * 10**6),
            Fraction(inside, there * (last - first)),
            Fraction(lost, there * whole),
        ]

    def lost(self, name: str) -> Fraction:
        """Return the loss of capacity of a resource of the whole machine."""
        there = sum(dict(host.resources).get(name, 0) for host in self.machine.hosts)
        area = 0

        def asked(job: dict[str, Any]) -> int:
            return int(job["nodes"] * job["each"].get(name, 0) + job["server"].get(name, 0))

        for begin, end, runs, waits in self.spans():
            free = there - sum(map(asked, runs))
            if any(0 < asked(job) <= free for job in waits):
                area += free * (end - begin)
        first = min(job["submit"] for job in self.jobs)
        return Fraction(area, there * (self.instants[-1] - first))


@pytest.mark.parametrize("policy", ["easy", "fcfs"])
def test_every_figure_is_the_sum_over_all_instants(policy: str) -> None:
    seen = {"unusable": 0, "partitions": 0, "lost": 0}
    for seed in range(40):
        rng = random.Random(seed)
        machine = random_site(rng)
        work = site_work(rng, machine)
        done = run(work, machine, load_policy(policy), driver="engine")
        if not done.ran.any() or len(set(work.submit[done.ran].tolist())) < 2:
            continue
        facts, plain = resource_facts(done, machine), Plain(done, machine)
        assert "unsure_on_hosts" not in facts
        for used in facts.get("resources", ()):
            name = used["name"]
            assert used["loss_of_capacity"] == pytest.approx(float(plain.lost(name)))
            seen["lost"] += used["loss_of_capacity"] > 0
            if name == "lic":
                assert used["unusable_mean"] is None
                continue
            assert used["unusable_mean"] == pytest.approx(float(plain.unusable(name)))
            seen["unusable"] += used["unusable_mean"] > 0
        for used in facts.get("partitions", ()):
            hosts = next(p.hosts for p in machine.partitions if p.name == used["partition"])
            wanted = plain.of_partition(hosts, used["name"], used["partition"])
            found = [used["hours"], used["utilisation_submit"], used["loss_of_capacity"]]
            assert found == pytest.approx([float(each) for each in wanted])
            seen["partitions"] += 1
    assert min(seen.values()) > 3, seen


def test_without_hosts_nothing_is_guessed() -> None:
    rng = random.Random(1)
    machine = random_site(rng)
    done = run(site_work(rng, machine), machine, load_policy("easy"), driver="engine")
    assert done.hosts is not None
    assert held_on_hosts(done.only(done.ran), machine) is not None
    from dataclasses import replace

    assert held_on_hosts(replace(done, hosts=None), machine) is None
    strange = done.hosts.copy()
    strange[np.flatnonzero(done.ran)[0]] = "elsewhere"
    assert held_on_hosts(replace(done, hosts=strange), machine) is None


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """A recording of Slurm, imported, and a replay by the engine in ``replay`` and ``rows.csv``."""
    folder = tmp_path_factory.mktemp("hosts")
    of = imported(OWN / "partitions-gpu", folder)
    asked = ["replay", of.log, "--machine", of.machine, "--resources", of.resources, "-q"]
    out = ["--out", str(folder / "replay"), "--jobs", str(folder / "rows.csv")]
    assert command([*asked, "-p", "easy", "--driver", "engine", *out]) == 0
    return of


def files(site: Imported) -> list[str]:
    return ["--machine", site.machine, "--resources", site.resources]


def test_a_result_a_replay_and_a_log_have_the_same_tables(
    site: Imported, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(site.log).parent
    asked = [str(folder / "replay"), site.log, *files(site), "--by", "partition", "--json"]
    assert command(["metrics", *asked]) == 0
    replayed, real = json.loads(capsys.readouterr().out)["results"]
    kept = json.loads((folder / "replay" / "result.json").read_text())["results"][0]
    for key in ("resources", "partitions"):
        assert replayed[key] == kept[key]
        assert [each["name"] for each in real[key]] == [each["name"] for each in kept[key]]
    assert {each["label"] for each in replayed["by"]["partition"]} == {"batch", "gpu", "high"}
    gpu = {each["name"]: each for each in real["resources"]}["gpu"]
    assert 0 < gpu["unusable_mean"] < gpu["there"]
    assert command(["metrics", str(folder / "rows.csv"), *files(site), "--json"]) == 0
    (rows,) = json.loads(capsys.readouterr().out)["results"]
    assert rows["partitions"] == kept["partitions"]


def test_the_referee_counts_memory_and_gpus_of_a_replay(
    site: Imported, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = Path(site.log).parent
    capsys.readouterr()
    assert command(["verify", str(folder / "replay"), *files(site)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "processors, memory and gpu on each of 8 hosts at every instant, of 58 jobs" in said
    assert "the shares of hosts" not in said
    rows = side_rows(site)
    for row in rows:
        row["memory_per_node"] = str(40 * 10**9)  # two of them are above the 67 GB of a host
    other = site._replace(resources=str(tmp_path / "side.csv"))
    write_side_rows(other, rows)
    for schedule in ("replay", "rows.csv"):
        assert command(["verify", str(folder / schedule), *files(other), "--all"]) == 1
        assert "memory of host" in capsys.readouterr().out


@pytest.mark.parametrize("asked", [["metrics"], ["plot", "--kind", "hosts"]])
def test_what_the_side_file_has_is_not_left_out(
    site: Imported, capsys: pytest.CaptureFixture[str], tmp_path: Path, asked: list[str]
) -> None:
    out = ["-o", str(tmp_path / "map.png")] if asked[0] == "plot" else []
    capsys.readouterr()
    assert command([*asked, site.log, *files(site), *out]) == 0
    said = capsys.readouterr()
    text = " ".join((said.out + said.err).split())
    assert "left out of the log: features: 1 of 64 jobs; exclusive allocation: 1 of 64" in text
    assert "GPUs: " not in text
