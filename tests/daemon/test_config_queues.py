"""Which queue takes the jobs that name none."""

from __future__ import annotations

import pytest

from qbatch.daemon.config import parse_config
from qbatch.model.errors import InputError

POOL = '[[pool]]\nhosts = "n1"\ncpus = 4\n'


def queues(*names: str) -> str:
    return "".join(f'[[queue]]\nname = "{name}"\n' for name in names)


def test_a_queue_that_is_the_only_one_is_the_default_queue() -> None:
    assert parse_config(POOL + queues("only"), "c").default_queue == "only"
    assert parse_config(POOL + queues("first", "batch"), "c").default_queue == "batch"
    assert (
        parse_config(
            'default_queue = "first"\n' + POOL + queues("first", "second"), "c"
        ).default_queue
        == "first"
    )


def test_of_several_queues_one_must_be_named() -> None:
    with pytest.raises(
        InputError, match="there is no queue 'batch'; say which queue takes the jobs that name none"
    ):
        parse_config(POOL + queues("first", "second"), "c")
    with pytest.raises(InputError, match="there is no queue 'other'"):
        parse_config('default_queue = "other"\n' + POOL + queues("only"), "c")
