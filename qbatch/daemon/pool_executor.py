"""What a pool says of where its jobs run: the keys that go together in the configuration, and those that do not."""

from __future__ import annotations

import re
from typing import Any

from msgspec import structs

from qbatch.daemon.settings import Pool
from qbatch.model.toml_text import TomlText

OF_DASK = ("address", "directory", "timeout")
"""Keys of a pool of Dask workers."""


def parse_address(value: Any) -> str:
    """Return the address of a Dask scheduler.

    Raises:
        ValueError: it is none.
    """
    found = re.fullmatch(r"[a-z]+://[^\s/]+:([0-9]{1,5})", value) if isinstance(value, str) else None
    if found is None or not 0 < int(found[1]) < 65536:
        raise ValueError(f'{value!r} is no address of a Dask scheduler, such as "tcp://head:8786"')
    return str(value)


def check_executor(reader: TomlText, table: dict[str, Any], values: dict[str, Any]) -> None:
    """Refuse a pool of Dask workers without their scheduler, and keys of one where it is none.

    Raises:
        InputError: it is one.
    """
    is_dask = values.get("executor") == "dask"
    if is_dask and "address" not in values:
        text = '"dask" needs address, that of the scheduler; for example address = "tcp://head:8786"'
        raise reader.error("executor", text, None, table)
    for name in OF_DASK:
        if name in values and not is_dask:
            raise reader.error(name, 'goes only with executor = "dask"; write that too, or leave this out', None, table)
    if values.get("timeout") == 0:
        raise reader.error("timeout", "0 takes hosts down at once; write at least one second, such as timeout = 30", None, table)


def emulated(pools: tuple[Pool, ...]) -> tuple[Pool, ...]:
    """Return pools as they are where jobs are emulated: without what says where scripts run."""
    usual = {field.name: field.default for field in structs.fields(Pool) if field.name in ("executor", *OF_DASK)}
    return tuple(structs.replace(pool, **usual) for pool in pools)


def check_executors(reader: TomlText, executor: str, pools: tuple[Pool, ...]) -> None:
    """Refuse pools that are to run scripts where jobs are emulated.

    Raises:
        InputError: there is one.
    """
    if executor == "emulated" and any(pool.executor for pool in pools):
        table = next((each for each in reader.tables("pool") if "executor" in each), None)
        text = 'in a [[pool]] does not go together with "emulated" at the top; leave one out (--executor emulated emulates all)'
        raise reader.error("executor", text, None, table)
