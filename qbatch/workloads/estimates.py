"""Models of the estimates of a replay, by name (``--estimates f:4``).

A model gives every job of a workload one estimate: all policies see the same.  Its draws come from
the seed, so that the same seed gives the same estimates on every machine.  Only ``log`` and models
built on it give an estimate below the run time: a job that runs longer than its user asked for
stays such a job (docs/design.md has the consequences).

Sources: ``f`` Feitelson and Weil 1998, section 3.3; ``tsafrir`` and the values of ``rounded`` up to
18 h Tsafrir, Etsion and Feitelson 2005 (docs/spec/workloads.md 2.2).  Whole days above, and shares
of exact estimates, are our own.
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
"""The longest estimate in microseconds: half of the kernels' ``FOREVER``."""

_STREAM = 7
_DEEPEST = 4

Given = dict[str, Any]
Make = Callable[[Given, Int64Array, Int64Array, int], Int64Array]
"""From parameters, estimates of the inner model (without one, requested times), run times and a
seed to estimates."""


@dataclass(frozen=True)
class Model:
    """A model with a name.

    Attributes:
        form: how it is written.
        meaning: what it gives a job.
        make: makes the estimates.
        parameters: those that are numbers; ``bare`` is the required one that is written without its
            name.
        inner: the parameter that is itself a model, and its default.
    """

    form: str
    meaning: str
    make: Make
    parameters: tuple[Parameter, ...] = ()
    bare: str | None = None
    inner: tuple[str, str] | None = None
    is_drawn: bool = False


@dataclass(frozen=True)
class Estimates:
    """A model of estimates with its parameters.

    Attributes:
        name: the canonical name of the model: only parameters that differ from the defaults.
        is_drawn: whether the seed may change anything.
        make, given, inner: the function of the model, its parameters, and the model that it is
            built on.
    """

    name: str
    is_drawn: bool
    make: Make
    given: Given
    inner: Estimates | None = None

    def of(self, asked: Int64Array, run: Int64Array, seed: int) -> Int64Array:
        """Return the estimates of the jobs of a workload, in microseconds; shape (jobs,).

        Args:
            asked: the requested times, the run time of jobs without one, in microseconds; shape
                (jobs,).
            run: the run times in microseconds; shape (jobs,).
            seed: of the draws; a whole number >= 0.

        Raises:
            UsageError: an estimate is too long to count, or the model has none for these run times.
        """
        return self.make(
            self.given, asked if self.inner is None else self.inner.of(asked, run, seed), run, seed
        )


def read_estimates(text: str) -> Estimates:
    """Return the model of a text such as ``log``, ``f:4`` or ``exact:share=0.4,rest=f:5``.

    The parameters of an inner model follow as ``rest.largest=64800``.

    Raises:
        UsageError: names the model or the parameter, the reason, and the known ones.
    """
    return _read(text, f"--estimates {text!r}", 1)


def split_estimates(text: str) -> list[str]:
    """Return the models of a list such as ``log,exact:share=0.4,rest=f:5,rounded``; ``key=value``
    belongs to the one before."""
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
        raise UsageError(
            f"{where}: there is no model {name[:40]!r}{suggestion(name, MODELS)} (known: {forms})"
        )
    model = MODELS[name]
    if model.bare is not None:
        if not tail:
            raise UsageError(f"{where}: write {model.form}, with a number")
        values = read_parameters([f"{model.bare}={tail}"], model.parameters, where)
        (only,) = model.parameters
        return Estimates(
            f"{name}:{only.text(values[model.bare])}", model.is_drawn, model.make, values
        )
    pairs = [pair for pair in tail.split(",") if pair]
    inner = None
    if model.inner is not None:
        pairs, inner_text = _inner_of(pairs, *model.inner)
        inner = _read(inner_text, where, depth + 1)
    values = read_parameters(pairs, model.parameters, where)
    typed = canonical_name(name, values, model.parameters)
    if model.inner is not None and inner is not None and inner.name != model.inner[1]:
        head, *further = inner.name.split(",")  # as in rest=exact:share=0.4,rest.rest=f:2
        typed += ("," if ":" in typed else ":") + f"{model.inner[0]}={head}"
        typed += "".join(f",{model.inner[0]}.{pair}" for pair in further)
    return Estimates(
        typed, model.is_drawn or (inner is not None and inner.is_drawn), model.make, values, inner
    )


def _inner_of(pairs: list[str], name: str, default: str) -> tuple[list[str], str]:
    """Return the pairs that are not of the inner model, and the text of the inner model."""
    chosen = [pair.partition("=")[2] for pair in pairs if pair.startswith(f"{name}=")]
    further = [pair.removeprefix(f"{name}.") for pair in pairs if pair.startswith(f"{name}.")]
    # A second one stays, for read_parameters to report it.
    own = [pair for pair in pairs if not pair.startswith((f"{name}=", f"{name}."))] + [
        f"{name}={each}" for each in chosen[1:]
    ]
    text = chosen[0] if chosen else default
    return own, text + "".join(
        f"{':' if not place and ':' not in text else ','}{each}"
        for place, each in enumerate(further)
    )


def _factor(given: Given, asked: Int64Array, run: Int64Array, seed: int) -> Int64Array:
    factor = float(given["N"])
    if factor == 1.0:
        return run.copy()
    draws = Draws((seed, round(factor * 1000))).fractions(len(run))
    stretched = np.rint(run * (1.0 + draws * (factor - 1.0)))
    if len(run) and float(stretched.max()) > _LONGEST:
        raise UsageError(
            f"--estimates f:{factor:g}: makes a run time too long to count; use a smaller N"
        )
    return np.maximum(stretched.astype(np.int64), run)


def _exact(given: Given, asked: Int64Array, run: Int64Array, seed: int) -> Int64Array:
    # The jobs of a smaller share are among those of every larger one, and the estimates of the
    # others do not depend on it.
    estimate = asked.copy()
    exact = Draws((seed, _STREAM)).shuffled(len(run))[: int(given["share"] * len(run) + 0.5)]
    estimate[exact] = run[exact]
    return estimate


def _tsafrir(given: Given, asked: Int64Array, run: Int64Array, seed: int) -> Int64Array:
    try:
        estimate = tsafrir_estimates(
            run / MICROSECONDS, seed=seed, largest_s=int(given["largest"]) or None
        )
    except UsageError as error:
        raise UsageError(f"--estimates tsafrir: {error}") from error
    return np.asarray(estimate * MICROSECONDS, np.int64)


def round_values(estimate: Int64Array) -> Int64Array:
    """Return the least round value that is not below each estimate, in microseconds: a popular one,
    above 18 h whole days."""
    popular = np.sort(np.array(POPULAR_S, np.int64)) * MICROSECONDS
    day = DAY_S * MICROSECONDS
    place = np.searchsorted(popular, estimate, side="left")
    days = (estimate // day + (estimate % day > 0)) * day
    return np.asarray(
        np.where(place < len(popular), popular[np.minimum(place, len(popular) - 1)], days), np.int64
    )


MODELS: dict[str, Model] = {
    "log": Model(
        "log",
        "the requested time; the run time if the log has none",
        lambda given, asked, run, seed: asked,
    ),
    "perfect": Model("perfect", "its run time", lambda given, asked, run, seed: run.copy()),
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
        "a random share of the jobs gets the run time; each other job the estimate of MODEL (log)",
        _exact,
        (Real("share", 1.0, 0.0, 1.0, "share of the jobs with the run time as estimate"),),
        inner=("rest", "log"),
        is_drawn=True,
    ),
    "rounded": Model(
        "rounded:of=MODEL",
        "the estimate of MODEL (log), lifted to the next value that people type",
        lambda given, asked, run, seed: round_values(asked),
        inner=("of", "log"),
    ),
    "tsafrir": Model(
        "tsafrir:largest=SECONDS",
        (
            "what users would request: few popular values, the largest most of all, never below "
            "the "
            "run time"
        ),
        _tsafrir,
        (
            Whole(
                "largest",
                0,
                0,
                10**9,
                "the largest estimate, seconds; 0: the least whole hour that no run exceeds",
            ),
        ),
        is_drawn=True,
    ),
}
"""The models by name."""
