"""Models that generate a log, by name, as in ``lublin:jobs=5000,procs=128``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from qbatch.model.errors import UsageError, suggestion
from qbatch.workloads.log import Log


def _origin2000() -> Callable[..., Log]:
    from qbatch.workloads.origin2000 import generate_month

    def origin2000(*, month: str, seed: int = 1, warmup_days: int = 7) -> Log:
        return generate_month(month, seed=seed, warmup_days=warmup_days)

    return origin2000


def _lublin() -> Callable[..., Log]:
    from qbatch.workloads.lublin import generate_lublin

    return generate_lublin


def _plain() -> Callable[..., Log]:
    from qbatch.workloads.generate import generate_log

    def plain(
        *, jobs: int, procs: int, load: float = 0.85, seed: int = 1, accuracy: float = 0.4, campaigns: float = 0.0
    ) -> Log:
        return generate_log(jobs=jobs, procs=procs, load=load, seed=seed, accuracy=accuracy, campaigns=campaigns)

    return plain


MODELS: dict[str, Callable[[], Callable[..., Log]]] = {"lublin": _lublin, "origin2000": _origin2000, "plain": _plain}
"""The models: that of Lublin and Feitelson, a month of the Origin 2000, and the small generator of ``qbatch trace generate``."""

_TYPES: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str}


def is_model(text: str) -> bool:
    """Return whether a text names a model, with or without parameters."""
    return text.partition(":")[0] in MODELS


def read_model(text: str) -> Callable[[int], Log]:
    """Return the function from a seed to the log of a text such as ``lublin:jobs=5000,procs=128``.

    The parameters are those of ``qbatch generate`` and ``qbatch trace generate``, with ``_`` or ``-`` in their names, without
    the seed.

    Raises:
        UsageError: names the parameter and those of the model.
    """
    name, _, tail = text.partition(":")
    where = f"log {text!r}"
    if name not in MODELS:
        raise UsageError(f"{where}: there is no model {name!r}{suggestion(name, MODELS)} (known: {', '.join(MODELS)})")
    make = MODELS[name]()
    takes = {key: each for key, each in inspect.signature(make).parameters.items() if key != "seed"}
    given: dict[str, Any] = {}
    for pair in (pair for pair in tail.split(",") if pair):
        key, sign, value = pair.partition("=")
        key = key.replace("-", "_")
        if not sign or key not in takes:
            known = f"it takes {', '.join(takes)}"
            raise UsageError(f"{where}: {pair!r} is no parameter of {name}{suggestion(key, takes)} ({known})")
        kind = str(takes[key].annotation).partition(" ")[0]
        try:
            given[key] = _TYPES[kind](value)
        except ValueError:
            raise UsageError(f"{where}: {key}={value} is no {'whole ' if kind == 'int' else ''}number") from None
    missing = [key for key, each in takes.items() if each.default is inspect.Parameter.empty and key not in given]
    if missing:
        raise UsageError(f"{where}: {', '.join(f'{key}=' for key in missing)} is missing")
    return lambda seed: make(**given, seed=seed)
