"""The jobs of the generated cluster: they fit its hosts, have the load asked for, and are the same
to the bit."""

from __future__ import annotations

import hashlib
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.model.errors import UsageError
from qbatch.model.machine_file import machine_as_toml, parse_machine
from qbatch.workloads import write_log
from qbatch.workloads.cluster import GeneratedCluster, generate_cluster
from qbatch.workloads.cluster.hosts import counts_of
from qbatch.workloads.cluster.kinds import KINDS

SMALL = {"days": 2, "nodes": 12, "load": 0.7, "seed": 3}


def digest_of(cluster: GeneratedCluster) -> str:
    text = io.BytesIO()
    write_log(text, cluster.log.header, cluster.log.columns)
    whole = text.getvalue() + repr((cluster.requests, cluster.gpus.tolist())).encode()
    return hashlib.sha256(whole).hexdigest()


def test_the_same_arguments_give_these_bits_on_every_machine() -> None:
    assert digest_of(generate_cluster(**SMALL)) == DIGEST
    assert digest_of(generate_cluster(**SMALL | {"seed": 4})) != DIGEST


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 3), st.integers(8, 40), st.sampled_from([0.01, 0.4, 1.0, 1.5]), st.integers(0, 9)
)
def test_every_job_fits_the_hosts_of_its_partitions(
    days: int, nodes: int, load: float, seed: int
) -> None:
    cluster = generate_cluster(days=days, nodes=nodes, load=load, seed=seed)
    log, hosts = cluster.log, cluster.machine.hosts
    partitions = {each.name: each.hosts for each in cluster.machine.partitions}
    rows = zip(
        cluster.requests, log["procs_requested"].tolist(), cluster.gpus.tolist(), strict=True
    )
    for request, procs, gpus in set(rows):
        count, cpus, memory, each, gpu_type, features, names, is_exclusive = request
        asked = [(f"gpu:{gpu_type}" if gpu_type else "gpu", int(each))] if int(each) else []
        size = int(memory.removesuffix("GB").removesuffix("TB")) << (40 if "TB" in memory else 30)
        among = {place for name in names.split(",") for place in partitions[name]}
        fitting = [
            place
            for place in among
            if hosts[place].could_hold(int(cpus), size, tuple(asked))
            and set(filter(None, features.split("&"))) <= set(hosts[place].features)
        ]
        assert len(fitting) >= int(count)
        assert procs == int(count) * int(cpus)
        assert gpus == int(count) * int(each)
        assert is_exclusive in ("0", "1")
    assert ((log["submit"] >= 0) & (log["submit"] < days * 86_400)).all()
    assert (np.diff(log["submit"]) >= 0).all()
    assert ((log["run"] >= 1) & (log["run"] <= log["time_requested"])).all()
    assert (log["time_requested"] <= days * 86_400).all()


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 3), st.integers(8, 40), st.sampled_from([0.01, 0.4, 1.0, 1.5]), st.integers(0, 9)
)
def test_the_load_is_that_asked_for(days: int, nodes: int, load: float, seed: int) -> None:
    cluster = generate_cluster(days=days, nodes=nodes, load=load, seed=seed)
    run = cluster.log["run"].astype(np.int64)
    there = sum(dict(host.resources).get("gpu", 0) for host in cluster.machine.hosts)
    asked, got = load * there * days * 86_400, int((cluster.gpus * run).sum())
    # The last job of a kind is cut to whole seconds of all its GPUs.
    assert abs(got - asked) <= sum(max(count * each for _, count, each in k.sizes) for k in KINDS)
    cpu = cluster.gpus == 0
    procs = counts_of(nodes)["cpu"] * 128
    assert (
        abs(
            int((cluster.log["procs_requested"].astype(np.int64) * run)[cpu].sum())
            - load * procs * days * 86_400
        )
        <= 256
    )


def test_the_machine_file_of_the_cluster_is_read_as_it_is() -> None:
    machine = generate_cluster(**SMALL).machine
    assert parse_machine("\n".join(machine_as_toml(machine)), "m.toml") == machine
    assert [host.name for host in machine.hosts] == [
        *(f"a{number}" for number in range(1, 6)),
        *("h1", "h2", "h3", "l1", "c1", "c2", "c3"),
    ]


def test_an_array_is_equal_jobs_of_one_user_at_one_second() -> None:
    cluster = generate_cluster(**SMALL | {"load": 1.5})
    keys = zip(
        *(cluster.log[name].tolist() for name in ("submit", "user", "time_requested")),
        cluster.requests,
        strict=True,
    )
    counts: dict[tuple[object, ...], int] = {}
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    assert max(counts.values()) > 10


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"days": 0}, "--days is 0; use 1 to 366"),
        ({"nodes": 7}, "--nodes is 7; use 8 to 1,024"),
        ({"load": 0.0}, "--load is 0; use 0.01 to 4, for example 0.8"),
        ({"load": float("nan")}, "--load is nan; use 0.01 to 4"),
        ({"seed": -1}, "--seed is -1; use 0 or more"),
    ],
)
def test_values_out_of_range_are_refused(wrong: dict[str, int], error: str) -> None:
    with pytest.raises(UsageError, match="generate cluster: ") as raised:
        generate_cluster(**wrong)
    assert error in str(raised.value)


DIGEST = "582e700a5f986393fcc431b0bee5784cedd56b00dbc1fc44d19213edcc998728"
