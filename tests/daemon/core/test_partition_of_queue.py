"""A queue that names a partition of its pool's machine: its jobs run there, and have its limits."""

from __future__ import annotations

import pytest

from qbatch.cli.pbs.format_attributes import queue_attributes
from qbatch.daemon.config import as_toml, parse_config
from qbatch.daemon.core.invariants import breaches
from qbatch.daemon.core.records import queue_record
from qbatch.model.errors import InputError
from qbatch.wire.errors import Refusal
from tests.daemon.core.driver import Bench
from tests.daemon.core.test_slots import record, submit

SITE = """
executor = "emulated"
default_queue = "cpu"
[[pool]]
[pool.machine]
schema = 2
[[pool.machine.host]]
name = "c1"
cpus = 4
[[pool.machine.host]]
name = "g1"
cpus = 4
[[pool.machine.partition]]
name = "main"
hosts = ["c1"]
default = true
[[pool.machine.partition]]
name = "gpu"
hosts = ["g1"]
times = { default = "0:05:00", max = "0:30:00" }
share = "exclusive"
[[queue]]
name = "cpu"
[[queue]]
name = "gpu"
partition = "gpu"
"""


def test_jobs_run_in_the_partition_of_their_queue_with_its_limits() -> None:
    bench = Bench(SITE)
    own = submit(bench, "select=1:ncpus=1", queue="gpu")
    other = submit(bench, "select=1:ncpus=1", queue="gpu")
    plain = submit(bench, "select=1:ncpus=4", queue="cpu")
    waits = submit(bench, "select=1:ncpus=1", queue="cpu")
    bench.make_pass()
    assert record(bench, own).exec_vnode == "(g1:ncpus=1)"
    assert record(bench, plain).exec_vnode == "(c1:ncpus=4)"
    # The partition is exclusive; and jobs of the default one do not go to g1.
    assert [bench.state(job) for job in (other, waits)] == ["Q", "Q"]
    assert record(bench, own).resources["walltime"] == "00:05:00"
    assert record(bench, plain).resources["walltime"] == "01:00:00"
    assert breaches(bench.core) == []
    shown = [
        {each[0]: each[2] for each in queue_attributes(queue_record(bench.core, queue))}
        for queue in bench.core.queues.values()
    ]
    assert [each.get("partition") for each in shown] == [None, "gpu"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("ncpus=1,walltime=1:00:00", "partition gpu: it asks for 3600 s, at most 1800 s"),
        ("select=2:ncpus=4", "the job can never run in queue gpu"),
    ],
)
def test_what_the_partition_cannot_hold_is_refused(text: str, error: str) -> None:
    with pytest.raises(Refusal, match=error):
        submit(Bench(SITE), text, queue="gpu")


def test_a_partition_that_is_not_there_is_refused_with_its_line() -> None:
    assert parse_config(SITE, "c").queues[1].partition == "gpu"
    with pytest.raises(InputError) as caught:
        parse_config(SITE.replace('partition = "gpu"', 'partition = "gpv"'), "c")
    assert "line 26" in str(caught.value)
    assert "'gpv'; did you mean 'gpu'? (it has main, gpu)" in str(caught.value)
    with pytest.raises(InputError, match="it has none; leave partition out"):
        parse_config(
            '[[pool]]\nhosts = "n1"\ncpus = 1\n[[queue]]\nname = "batch"\npartition = "x"', "c"
        )


def test_the_configuration_is_written_with_the_partition() -> None:
    settings = parse_config(SITE, "c")
    assert parse_config(as_toml(settings), "again") == settings
