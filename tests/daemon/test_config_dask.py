"""The configuration of a pool of Dask workers: what it needs, what does not go together, and that
it is written as it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from qbatch.cli.up import _settings
from qbatch.daemon.config import as_toml, parse_config
from qbatch.daemon.core import steps
from qbatch.daemon.core.reconfigure import reconfigure
from qbatch.daemon.core.state import Core
from qbatch.daemon.running import _identity
from qbatch.model.errors import InputError
from qbatch.policies.registry import load_policy

POOL = '[[pool]]\nname = "c"\nhosts = "w[1-3]"\ncpus = 4\n'
DASK = f'{POOL}executor = "dask"\naddress = "tcp://head:8786"\n'


def test_it_is_written_as_it_is_read() -> None:
    read = parse_config(f'{DASK}directory = "/scratch/x"\ntimeout = "2:00"\n', "test")
    (pool,) = read.pools
    assert (pool.executor, pool.address, pool.directory, pool.timeout) == (
        "dask",
        "tcp://head:8786",
        "/scratch/x",
        120_000_000,
    )
    assert parse_config(as_toml(read), "again") == read
    assert parse_config(as_toml(parse_config(DASK, "test")), "again") == parse_config(DASK, "test")


def test_a_store_that_knows_no_such_pools_is_written_as_before() -> None:
    assert "executor" not in as_toml(parse_config(POOL, "test")).partition("[[pool]]")[2]


def test_a_machine_file_may_be_a_cluster() -> None:
    text = 'executor = "dask"\naddress = "tls://head:1"\nmachine = "origin2000"\n'
    read = parse_config(f"[[pool]]\n{text}", "test")
    assert (read.pools[0].executor, len(read.pools[0].hosts)) == ("dask", 8)
    assert parse_config(as_toml(read), "again") == read


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'{POOL}executor = "dask"\n', "line 5, key 'executor': \"dask\" needs address"),
        (
            f'{POOL}address = "tcp://head:8786"\n',
            "line 5, key 'address': goes only with executor = \"dask\"",
        ),
        (f"{POOL}timeout = 3\n", "line 5, key 'timeout': goes only with"),
        (f"{DASK}timeout = 0\n", "line 7, key 'timeout': 0 takes hosts down at once"),
        (
            f'{POOL}executor = "process"\ndirectory = "/x"\n',
            "line 6, key 'directory': goes only with",
        ),
        (f'{POOL}executor = "dsk"\n', "'dsk' is not known (known: process, dask)"),
        (
            DASK.replace("tcp://head:8786", "head"),
            "line 6, key 'address': 'head' is not an address of a Dask scheduler",
        ),
        (DASK.replace("8786", "70000"), "is not an address of a Dask scheduler"),
        (
            f'executor = "emulated"\n{DASK}',
            "line 6, key 'executor': in a [[pool]] does not go together",
        ),
    ],
)
def test_what_cannot_be_is_named_with_its_line(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_config(text, "test")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_emulated_by_the_flag_is_written_as_it_is_read(tmp_path: Path) -> None:
    """The store keeps the settings as a text, which the next start reads first."""
    config = tmp_path / "c.toml"
    config.write_text(f'{DASK}directory = "/scratch/x"\ntimeout = "2:00"\n', encoding="utf-8")
    kept = _settings(config, "emulated", None, None, "real", has_trace=False)
    assert parse_config(as_toml(kept), "the store") == kept
    assert kept.executor == "emulated"
    assert kept.pools == parse_config(POOL, "test").pools


@pytest.mark.parametrize("other", ['directory = "/other"\n', 'address = "tcp://other:1"\n'])
def test_a_cluster_cannot_move_under_running_jobs(other: str) -> None:
    core = Core(
        parse_config(f'{POOL}executor = "dask"\naddress = "tcp://head:8786"\n', "test"), load_policy
    )
    key = other.partition(" ")[0]
    text = (
        "".join(line for line in DASK.splitlines(keepends=True) if not line.startswith(key)) + other
    )
    moved = parse_config(text, "test")
    steps.whole(reconfigure(core, moved))
    assert core.pools[0].settings == moved.pools[0]
    core.pools[0].running[1] = object()  # type: ignore[assignment, index]
    with pytest.raises(InputError, match="changes its hosts, Dask cluster or directory"):
        steps.whole(reconfigure(core, parse_config(DASK, "test")))


def test_a_pool_may_have_any_name_but_the_name_of_the_store(tmp_path: Path) -> None:
    name = _identity(tmp_path)
    assert len(name) == 32
    assert _identity(tmp_path) == name
    for path in tmp_path.iterdir():
        with pytest.raises(InputError, match="is not a name"):
            parse_config(DASK.replace('"c"', f'"{path.name}"'), "test")


def test_another_executor_makes_another_pool() -> None:
    """Its engine begins anew: what ran in it under the other executor would be found nowhere."""
    core = Core(parse_config(POOL, "test"), load_policy)
    engine = core.pools[0].engine
    steps.whole(reconfigure(core, parse_config(POOL, "test")))
    assert core.pools[0].engine is engine
    steps.whole(reconfigure(core, parse_config(DASK, "test")))
    assert core.pools[0].settings.executor == "dask"
    assert core.pools[0].engine is not engine
