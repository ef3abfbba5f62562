"""A machine file in the daemon's configuration: by name, by path, written out; and what is said of
a bad one."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from qbatch.cli.config import app
from qbatch.daemon.config import as_toml, parse_config, read_config
from qbatch.daemon.core.state import machine_of
from qbatch.daemon.settings import pool_on
from qbatch.model.errors import InputError
from qbatch.model.machine import Machine
from qbatch.workloads.machines import load_machine
from tests.daemon.harness import Daemon

CONFIG = """default_queue = "batch"
[[pool]]
name = "main"
machine = "{machine}"
policy = "lsf"
runtime = "fixed(60)"
[[queue]]
name = "batch"
"""
SMALL = """schema = 1
single_host = true
[[host]]
name = "n[1-2]"
cpus = 4
memory = "8GB"
[[class]]
name = "any"
limit = 3
"""


def test_the_pool_of_a_machine_file_is_the_machine_of_the_replay() -> None:
    settings = parse_config(CONFIG.format(machine="origin2000"), "qbatch.toml")
    assert machine_of(settings.pools[0]) == load_machine("origin2000")
    assert (settings.pools[0].policy, settings.pools[0].runtime) == ("lsf", "fixed(60)")


@pytest.mark.parametrize("machine", ["origin2000", "small.toml"])
def test_a_configuration_with_a_machine_is_written_so_that_it_gives_itself_again(
    tmp_path: Path, machine: str
) -> None:
    """The text is what the store keeps: it needs no other file, which may change meanwhile."""
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    (tmp_path / "qbatch.toml").write_text(CONFIG.format(machine=machine), encoding="utf-8")
    settings = read_config(tmp_path / "qbatch.toml")
    text = as_toml(settings)
    assert parse_config(text, "again") == settings
    assert as_toml(parse_config(text, "again")) == text


def test_a_file_next_to_the_configuration_wins_over_a_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "origin2000").write_text(SMALL, encoding="utf-8")
    (tmp_path / "qbatch.toml").write_text(CONFIG.format(machine="origin2000"), encoding="utf-8")
    assert [host.name for host in read_config(tmp_path / "qbatch.toml").pools[0].hosts] == [
        "n1",
        "n2",
    ]


@pytest.mark.parametrize(
    ("small", "config", "message"),
    [
        (
            ("cpus = 4", "cpus = no"),
            ("", ""),
            r"qbatch.toml: line 4, key 'machine': .*small.toml: not valid TOML",
        ),
        (
            ("cpus = 4", "cpus = 0"),
            ("", ""),
            r"key 'machine': .*small.toml: line 5, key 'cpus': 0 is not a whole number",
        ),
        (("n[1-2]", "n.example"), ("", ""), r"key 'machine': 'n.example' is not a name of a host"),
        (
            ("", ""),
            ("small.toml", "smal.toml"),
            r"line 4, key 'machine': .*smal.toml: machine file cannot be read",
        ),
        (
            ("", ""),
            ('runtime = "fixed(60)"', "cpus = 4"),
            r"line 6, key 'cpus': does not go together with machine",
        ),
        (
            ("", ""),
            ('"small.toml"', "7"),
            r"line 4, key 'machine': 7 is neither the name of a machine file",
        ),
        (("", ""), ('policy = "lsf"', 'policy = "lfs"'), r"line 5, key 'policy': .*lsf"),
    ],
)
def test_a_bad_machine_is_refused_with_file_key_line_and_reason(
    tmp_path: Path, small: tuple[str, str], config: tuple[str, str], message: str
) -> None:
    (tmp_path / "small.toml").write_text(SMALL.replace(*small), encoding="utf-8")
    text = CONFIG.format(machine="small.toml").replace(*config)
    (tmp_path / "qbatch.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as error:
        read_config(tmp_path / "qbatch.toml")
    assert "\n" not in str(error.value)


def test_the_tables_of_a_machine_may_stand_in_the_configuration_itself() -> None:
    inside = SMALL.replace("schema", "[pool.machine]\nschema").replace(
        "[[host]]", "[[pool.machine.host]]"
    )
    inside = inside.replace("[[class]]", "[[pool.machine.class]]")
    text = CONFIG.replace('machine = "{machine}"\n', "").replace("[[queue]]", inside + "[[queue]]")
    pool = parse_config(text, "qbatch.toml").pools[0]
    assert [(host.name, host.memory) for host in pool.hosts] == [("n1", 2**33), ("n2", 2**33)]
    with pytest.raises(
        InputError, match=r"qbatch.toml: line 11, key 'cpus': -4 is not a whole number"
    ):
        parse_config(text.replace("cpus = 4", "cpus = -4"), "qbatch.toml")


def test_the_origin_of_every_value_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "qbatch.toml"
    path.write_text(CONFIG.format(machine="origin2000"), encoding="utf-8")
    shown = CliRunner().invoke(app, ["show", "--config", str(path), "--origin"])
    assert shown.exit_code == 0
    assert f'name = "eir"  # {path}' in shown.stdout
    assert 'server = "qbatch"  # default' in shown.stdout


def test_the_option_gives_the_pool_in_place_of_the_configured_ones(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    with Daemon(
        tmp_path, "--machine", "small.toml", "--executor", "emulated", "--policy", "lsf"
    ) as daemon:
        assert "n2" in daemon.run("pbsnodes", "-a").stdout
        names = [daemon.submit("sleep 60\n") for _ in range(4)]
        for name in names[:3]:
            daemon.until(name, "R")
        assert daemon.jobs(names[3])[names[3]].state == "Q"
        assert (
            "3 jobs of class any run, limit = 3" in daemon.run("qbatch", "explain", names[3]).stdout
        )


def test_up_says_which_policy_does_not_follow_the_classes(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    for policy, is_noted in (("easy", True), ("immediate:inner=lsf", False)):
        daemon = Daemon(tmp_path / policy.partition(":")[0])
        daemon.directory.mkdir()
        up = (
            "qbatch",
            "up",
            "--machine",
            str(tmp_path / "small.toml"),
            "--state",
            str(daemon.state),
        )
        try:
            printed = daemon.run(
                *up, "--socket", daemon.socket, "--executor", "emulated", "-p", policy
            ).stderr
        finally:
            daemon.run("qbatch", "down", code=None)
        lines = [line for line in printed.splitlines() if line.startswith("note: ")]
        says = (
            "note: of the policies only lsf follows the classes of the machine file, also "
            "inside immediate and soon"
        )
        assert lines == ([f"{says}; {policy} does not"] if is_noted else [])


def test_two_options_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    done = daemon.run(
        "qbatch", "up", "--machine", "origin2000", "--procs", "4", "--foreground", code=None
    )
    assert done.returncode == 2
    assert "leave one out" in done.stderr


def test_a_machine_of_hosts_that_jobs_span_is_a_pool_that_counts_processors() -> None:
    hosts = load_machine("origin2000").hosts[:2]
    pool = pool_on(Machine(hosts=hosts), "main", "easy")
    assert (pool.spans, pool.single_host) == (True, False)


POOLS = """policy = "easy"
[[pool]]
name = "one"
hosts = "a"
cpus = 4
policy = "easy"
[[pool]]
name = "two"
hosts = "b"
cpus = 8
[[queue]]
name = "batch"
[[queue]]
name = "other"
"""


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (("cpus = 8", "cpus = 0"), "line 10, key 'cpus': 0 is not"),
        (("cpus = 8", "cpus = 4\npolicy = 'esy'"), "line 11, key 'policy'"),
        (
            ('hosts = "b"', 'hosts = ["b", "a"]'),
            "line 9, key 'hosts': 'a' is a host of pool 'one' already",
        ),
        (('hosts = "b"', 'hosts = ["b", "b"]'), "line 9, key 'hosts': 'b' is there twice"),
        (("cpus = 8", ""), "line 7, key 'pool': needs cpus"),
        (('name = "other"', "pool = 'one'"), "line 13, key 'queue': needs a name"),
        (
            ('policy = "easy"\n[[pool]]\nname = "one"', 'policy = "esy"\n[[pool]]\nname = "one"'),
            "line 1, key 'policy'",
        ),
    ],
)
def test_the_line_is_that_of_the_pool_or_queue_in_question(
    change: tuple[str, str], place: str
) -> None:
    with pytest.raises(InputError, match=place):
        parse_config(POOLS.replace(*change), "qbatch.toml")


def test_a_queue_that_names_no_default_walltime_takes_its_limit_where_that_is_shorter() -> None:
    pool = (
        '[[pool]]\nhosts = "n1"\ncpus = 4\n[[queue]]\nname = "batch"\n[[queue]]\nname = "debug"\n'
    )
    batch, debug = parse_config(f'{pool}max_walltime = "10:00"\n', "x.toml").queues
    assert (batch.default_walltime, debug.default_walltime) == (3_600_000_000, 600_000_000)
    with pytest.raises(
        InputError, match=r"x.toml: line 8, key 'default_walltime': queue debug: it is longer"
    ):
        parse_config(f'{pool}default_walltime = "20:00"\nmax_walltime = "10:00"\n', "x.toml")


def test_what_a_pool_enforces_is_written_as_it_is_read_and_holds_for_a_machine_too() -> None:
    pool = '[[pool]]\nhosts = "n1"\ncpus = 1\n'
    assert parse_config(pool, "test").pools[0].enforce == ("cput", "pcput")
    for text, enforced in (
        (f'{pool}enforce = ["mem", "vmem"]\n', ("mem", "vmem")),
        (f"{pool}enforce = []\n", ()),
        ('[[pool]]\nmachine = "origin2000"\nenforce = ["mem"]\n', ("mem",)),
    ):
        read = parse_config(text, "test")
        assert read.pools[0].enforce == enforced
        assert parse_config(as_toml(read), "again") == read
    with pytest.raises(
        InputError, match="line 4, key 'enforce': 'pmem' is none of cput, pcput, mem, vmem"
    ):
        parse_config(f'{pool}enforce = ["pmem"]\n', "test")
