"""Partitions with limits, amounts of the server and reservations in a machine file."""

from __future__ import annotations

import pytest

from qbatch.model.errors import InputError
from qbatch.model.machine import Partition, Reservation
from qbatch.model.machine_file import machine_as_toml, parse_machine

HOUR = 3600 * 1_000_000
SITE = """schema = 2
resource = [{ name = "gpu", types = ["a100"] }, { name = "matlab", kind = "server", total = 20 }]
[[host]]
name = "g[1-2]"
cpus = 8
resources = { "gpu:a100" = 4 }
weight = 10
[[host]]
name = "c1"
cpus = 4
[[partition]]
name = "gpu"
hosts = ["g[1-2]"]
times = { default = "1:00:00", max = "2-00:00:00" }
sizes = { min_hosts = 1, max_hosts = 2, max_memory_per_cpu = "8GB" }
share = "exclusive"
[[reservation]]
name = "course"
hosts = ["c1"]
start = 7200.5
duration = 600
repeat = "weekly"
users = ["ann"]
flags = ["flex"]
[[reservation]]
name = "maintenance"
hosts = ["all"]
start = 2026-12-01T08:00:00
duration = "8:00:00"
flags = ["maint"]
"""


def test_hosts_stand_in_racks() -> None:
    text = SITE.replace("weight = 10", 'weight = 10\nrack = "r2"')
    machine = parse_machine(text, "m.toml")
    assert [host.rack for host in machine.hosts] == ["", "r2", "r2", ""]
    assert parse_machine("\n".join(machine_as_toml(machine)), "again") == machine
    assert machine.digest == parse_machine(SITE, "m.toml").digest
    assert [host.get("rack") for host in machine.facts()["hosts"]] == [None, "r2", "r2", None]
    apart = 'schema = 2\nsingle_host = true\n[[host]]\nname = "a"\ncpus = 2\nrack = "r1"\n'
    inside = parse_machine(apart, "m.toml")
    assert parse_machine("\n".join(machine_as_toml(inside)), "again") == inside
    for wrong, words in (
        (apart.replace("schema = 2", "schema = 1"), "line 6, key 'rack': is not known in [[host]]"),
        (apart.replace('"r1"', "1"), "line 6, key 'rack': 1 is not a text; put it in quotes"),
        (apart.replace('"r1"', '" "'), "line 6, key 'rack': is empty; write a name, such as"),
        (apart.replace("rack", "racks"), "did you mean 'rack'?"),
    ):
        with pytest.raises(InputError) as refused:
            parse_machine(wrong, "m.toml")
        assert words in str(refused.value)


def test_a_site_is_read_and_written() -> None:
    machine = parse_machine(SITE, "m.toml")
    assert [host.name for host in machine.hosts] == ["c1", "g1", "g2", "@server"]
    assert [host.name for host in machine.real_hosts] == ["c1", "g1", "g2"]
    assert machine.server == 3
    assert machine.procs == 20
    assert machine.hosts[3].resources == (("matlab", 20),)
    assert machine.partitions == (
        Partition("gpu", (1, 2), False, HOUR, 48 * HOUR, 1, 2, 8 << 30, "exclusive"),
    )
    assert machine.reservations == (
        Reservation("course", (0,), "7200.5", HOUR // 6, "weekly", ("ann",), is_flexible=True),
        Reservation("maintenance", (0, 1, 2), "2026-12-01T08:00:00", 8 * HOUR, is_maintenance=True),
    )
    assert parse_machine("\n".join(machine_as_toml(machine)), "again") == machine


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"matlab", kind', '"gpu", kind'), "the resource 'gpu' appears twice"),
        (("total = 20", "total = -1"), "key 'total': matlab = -1 is not a whole number"),
        ((", total = 20", ""), "'matlab' needs a total, such as 20"),
        (('"server"', '"cluster"'), "there is no kind of resource 'cluster'"),
        (('types = ["a100"]', 'types = ["v100"]'), "a host has gpu:a100, which is none of v100"),
        (('types = ["a100"]', "total = 3"), "key 'total': is for kind = \"server\""),
        (('name = "matlab"', 'name = "gpu:a"'), "needs a name of letters, digits"),
        (("weight = 10", 'weight = "heavy"'), "key 'weight': 'heavy' is not a whole number"),
        (('"1:00:00", max', '"49:00:00", max'), "the default is above the greatest"),
        (('"1:00:00", max', '"1:00", max'), "'1:00' is not a time; write seconds"),
        (("min_hosts = 1", "min_hosts = 3"), "3 hosts at least and 2 at most"),
        (('"8GB"', '"8 apples"'), "max_memory_per_cpu: '8 apples' is not a memory size"),
        (('"exclusive"', '"alone"'), "there is no way to share hosts 'alone'"),
        (("sizes = { ", "sizes = { hosts = 3, "), "key 'hosts': is not known in sizes of a"),
        (('"course"', '"maintenance"'), "the reservation 'maintenance' appears twice"),
        (("start = 7200.5", 'start = "soon"'), "'soon' is not a date and time"),
        (("duration = 600\n", ""), "'course' needs a duration"),
        (('"weekly"', '"often"'), "there is no repetition 'often'"),
        (('["flex"]', '["magnetic"]'), "there is no flag 'magnetic'"),
        (('["ann"]', "[1]"), "key 'users': must be a list of names"),
        (('hosts = ["c1"]', 'hosts = ["@server"]'), "there is no host '@server'"),
        (('name = "c1"', 'name = "@server"'), "'@server' names the server"),
        (("schema = 2", "schema = 2\nsingle_host = true"), "key 'resource': needs jobs that may"),
    ],
)
def test_a_bad_site_is_refused_with_line_and_reason(change: tuple[str, str], message: str) -> None:
    assert change[0] in SITE
    with pytest.raises(InputError) as found:
        parse_machine(SITE.replace(*change), "m.toml")
    assert message in str(found.value)
