"""Where the estimates of a replay come from: models by name, as they are typed (``--estimates f:4``).

A model gives every job of a workload an estimate, once: all policies see the same.  What it draws comes from the seed, so that
the same seed gives the same estimates on every machine.  No model gives an estimate below the run time but ``log`` and what is
built on it: a job that runs longer than its user asked for stays such a job (docs/design.md says what becomes of it).

Sources: ``f`` Feitelson and Weil 1998, section 3.3; ``tsafrir`` and the values of ``rounded`` up to 18 h Tsafrir, Etsion and
Feitelson 2005 (docs/spec/workloads.md 2.2).  Whole days above, and shares of exact estimates, are our own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from qbatch.model.errors import UsageError, suggestion
from qbatch.model.parameters import Parameter, Real, Whole, canonical_name, read_parameters
from qbatch.model.record import MICROSECONDS, Int64Array
from qbatch.workloads.draws import Draws
from qbatch.workloads.tsafrir import POPULAR_S, tsafrir_estimates

DAY_S = 86_400

_LONGEST = 1 << 61
"""Microseconds that an estimate may have: half of what the kernels take for ever."""

_STREAM = 7
_DEEPEST = 4

Given = dict[str, Any]
Make = Callable[[Int64Array, Int64Array, int], Int64Array]


@dataclass(frozen=True)
class Estimates:
    """A model of estimates with its parameters.

    Attributes:
        name: the model as it is typed: what differs from the defaults.
        is_drawn: whether the seed may change anything.
        make: what ``of`` does.
    """

    name: str
    is_drawn: bool
    make: Make

    def of(self, asked: Int64Array, run: Int64Array, seed: int) -> Int64Array:
        """Return the estimates of the jobs of a workload, in microseconds; shape (jobs,).

        Args:
            asked: what the users asked for, the run time where they asked for nothing, in microseconds; shape (jobs,).
            run: the run times in microseconds; shape (jobs,).
            seed: of what is drawn; a whole number >= 0.

        Raises:
            UsageError: an estimate is too long to be counted, or the model has none for these run times.
        """
        return self.make(asked, run, seed)


@dataclass(frozen=True)
class Model:
    """A model that can be named.

    Attributes:
        form: how it is typed.
        meaning: what it gives a job.
        make: gives the function of ``Estimates`` for the parameters and the inner model.
        parameters: those that are numbers; ``bare`` names the one that is typed without its name, and has to be.
        inner: the parameter that is a model itself, and its default.
    """

    form: str
    meaning: str
    make: Callable[[Given, Estimates | None], Make]
    parameters: tuple[Parameter, ...] = ()
    bare: str | None = None
    inner: tuple[str, str] | None = None
    is_drawn: bool = False


def read_estimates(text: str) -> Estimates:
    """Return the model that a text such as ``log``, ``f:4`` or ``exact:share=0.4,rest=f:5`` names.

    The parameters of a model inside another follow as ``rest.largest=64800``.

    Raises:
        UsageError: naming the model or the parameter, the reason, and what is there.
    """
    return _read(text, f"--estimates {text!r}", 1)


def split_estimates(text: str) -> list[str]:
    """Return the models of a list such as ``log,exact:share=0.4,rest=f:5,rounded``; a ``key=value`` is of the one before."""
    found: list[str] = []
    for part in text.split(","):
        if "=" in part.partition(":")[0] and found:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found


def _read(text: str, where: str, depth: int) -> Estimates:
    if depth > _DEEPEST:
        raise UsageError(f"{where}: more than {_DEEPEST} models inside each other; use fewer")
    name, _, tail = text.partition(":")
    if name not in MODELS:
        forms = ", ".join(model.form for model in MODELS.values())
        raise UsageError(f"{where}: there is no model {name[:40]!r}{suggestion(name, MODELS)} (known: {forms})")
    model = MODELS[name]
    if model.bare is not None:
        if not tail:
            raise UsageError(f"{where}: write {model.form}, with a number")
        values = read_parameters([f"{model.bare}={tail}"], model.parameters, where)
        (only,) = model.parameters
        return Estimates(f"{name}:{only.text(values[model.bare])}", model.is_drawn, model.make(values, None))
    pairs = [pair for pair in tail.split(",") if pair]
    inner = None
    if model.inner is not None:
        pairs, inner_text = _inner_of(pairs, *model.inner)
        inner = _read(inner_text, where, depth + 1)
    values = read_parameters(pairs, model.parameters, where)
    typed = canonical_name(name, values, model.parameters)
    if model.inner is not None and inner is not None and inner.name != model.inner[1]:
        typed += ("," if ":" in typed else ":") + _typed_inside(model.inner[0], inner.name)
    return Estimates(typed, model.is_drawn or (inner is not None and inner.is_drawn), model.make(values, inner))


def _inner_of(pairs: list[str], name: str, default: str) -> tuple[list[str], str]:
    """Return the pairs that are not of the inner model, and the text of the inner model."""
    chosen = [pair.partition("=")[2] for pair in pairs if pair.startswith(f"{name}=")]
    further = [pair.removeprefix(f"{name}.") for pair in pairs if pair.startswith(f"{name}.")]
    # A second one stays where read_parameters sees that it is one too many.
    own = [pair for pair in pairs if not pair.startswith((f"{name}=", f"{name}."))] + [f"{name}={each}" for each in chosen[1:]]
    text = chosen[0] if chosen else default
    return own, text + "".join(f"{':' if not place and ':' not in text else ','}{each}" for place, each in enumerate(further))


def _typed_inside(name: str, inner: str) -> str:
    """Return an inner model as a parameter: ``rest=exact:share=0.4,rest.rest=f:2``."""
    head, *further = inner.split(",")
    return ",".join([f"{name}={head}", *(f"{name}.{pair}" for pair in further)])


def _log(given: Given, inner: Estimates | None) -> Make:
    return lambda asked, run, seed: asked


def _perfect(given: Given, inner: Estimates | None) -> Make:
    return lambda asked, run, seed: run.copy()


def _factor(given: Given, inner: Estimates | None) -> Make:
    factor = float(given["N"])

    def make(asked: Int64Array, run: Int64Array, seed: int) -> Int64Array:
        if factor == 1.0:
            return run.copy()
        draws = Draws((seed, round(factor * 1000))).fractions(len(run))
        stretched = np.rint(run * (1.0 + draws * (factor - 1.0)))
        if len(run) and float(stretched.max()) > _LONGEST:
            raise UsageError(f"--estimates f:{factor:g}: stretches a run time beyond what can be counted; use a smaller N")
        return np.maximum(stretched.astype(np.int64), run)

    return make


def _exact(given: Given, inner: Estimates | None) -> Make:
    def make(asked: Int64Array, run: Int64Array, seed: int) -> Int64Array:
        # The jobs of a smaller share are among those of every larger one, and what the others get does not depend on it.
        estimate = _of(inner, asked, run, seed).copy()
        exact = Draws((seed, _STREAM)).shuffled(len(run))[: int(given["share"] * len(run) + 0.5)]
        estimate[exact] = run[exact]
        return estimate

    return make


def _rounded(given: Given, inner: Estimates | None) -> Make:
    return lambda asked, run, seed: round_values(_of(inner, asked, run, seed))


def _tsafrir(given: Given, inner: Estimates | None) -> Make:
    largest_s = int(given["largest"]) or None

    def make(asked: Int64Array, run: Int64Array, seed: int) -> Int64Array:
        try:
            return np.asarray(tsafrir_estimates(run / MICROSECONDS, seed=seed, largest_s=largest_s) * MICROSECONDS, np.int64)
        except UsageError as error:
            raise UsageError(f"--estimates tsafrir: {error}") from error

    return make


def _of(inner: Estimates | None, asked: Int64Array, run: Int64Array, seed: int) -> Int64Array:
    return asked if inner is None else inner.of(asked, run, seed)


def round_values(estimate: Int64Array) -> Int64Array:
    """Return the least round value that is not below each estimate, in microseconds: a popular one, above 18 h whole days."""
    popular = np.sort(np.array(POPULAR_S, np.int64)) * MICROSECONDS
    day = DAY_S * MICROSECONDS
    place = np.searchsorted(popular, estimate, side="left")
    days = (estimate // day + (estimate % day > 0)) * day
    return np.asarray(np.where(place < len(popular), popular[np.minimum(place, len(popular) - 1)], days), np.int64)


MODELS: dict[str, Model] = {
    "log": Model("log", "what its user asked for; the run time where the log does not say", _log),
    "perfect": Model("perfect", "its run time", _perfect),
    "f": Model(
        "f:N",
        "uniform in [run, N x run]",
        _factor,
        (Real("N", 1.0, 1.0, 1e6, "the largest estimate, in run times"),),
        bare="N",
        is_drawn=True,
    ),
    "exact": Model(
        "exact:share=S,rest=MODEL",
        "a share of the jobs, drawn, gets the run time; each other job what MODEL (log) gives it",
        _exact,
        (Real("share", 1.0, 0.0, 1.0, "share of the jobs whose estimate is the run time"),),
        inner=("rest", "log"),
        is_drawn=True,
    ),
    "rounded": Model(
        "rounded:of=MODEL",
        "what MODEL (log) gives it, lifted to the next value that people type",
        _rounded,
        inner=("of", "log"),
    ),
    "tsafrir": Model(
        "tsafrir:largest=SECONDS",
        "what users would request: few popular values, the largest most of all, never below the run time",
        _tsafrir,
        (Whole("largest", 0, 0, 10**9, "the largest estimate, seconds; 0: the least whole hour that no run exceeds"),),
        is_drawn=True,
    ),
}
"""The models by name."""
