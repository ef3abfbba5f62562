"""Models of estimates: what each gives a job, against its definition written down plainly."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from qbatch.cli.main import app
from qbatch.model.errors import UsageError
from qbatch.model.machine import one_host
from qbatch.simulation import Options, prepare
from qbatch.workloads import generate_log
from qbatch.workloads.estimates import MODELS, read_estimates, split_estimates
from qbatch.workloads.tsafrir import tsafrir_estimates

SECOND = 1_000_000
HOUR = 3600
# Typed by hand from the model's list (docs/spec/workloads.md 2.2), in seconds.
POPULAR = [
    300,
    600,
    900,
    1200,
    1800,
    *(hours * HOUR for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18)),
]
TEXTS = [
    "log",
    "perfect",
    "f:1",
    "f:2.5",
    "exact",
    "exact:share=0.4",
    "exact:share=0.4,rest=f:5",
    "rounded",
    "rounded:of=perfect",
    "rounded:of=f:3",
    "tsafrir",
    "exact:share=0.25,rest=rounded,rest.of=f:2",
    "exact:share=0.5,rest=tsafrir,rest.largest=360000",
]


def jobs(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return what users asked for and run times in microseconds; some jobs run longer than they
    asked for."""
    rng = random.Random(seed)
    run = [
        rng.choice([0, 1, 59, rng.randint(1, 3 * HOUR), rng.randint(1, 40 * HOUR)]) * SECOND
        for _ in range(count)
    ]
    asked = [max(each // rng.choice([1, 1, 1, 2]) * rng.randint(1, 5), SECOND) for each in run]
    return np.array(asked, np.int64), np.array(run, np.int64)


def next_round(estimate: int) -> int:
    """Return the least value of the list that is not below an estimate, counting up days by
    hand."""
    candidates = [each * SECOND for each in POPULAR]
    while candidates[-1] < estimate:
        candidates.append((candidates[-1] // SECOND // (24 * HOUR) + 1) * 24 * HOUR * SECOND)
    return next(each for each in candidates if each >= estimate)


@pytest.mark.parametrize("factor", [1.0, 1.001, 2.0, 7.25, 400.0, 1e6])
@pytest.mark.parametrize("seed", [0, 5, 2**31])
def test_the_f_model_draws_as_it_did_before_it_had_a_package_of_its_own(
    factor: float, seed: int
) -> None:
    asked, run = jobs(300)
    found = read_estimates(f"f:{factor:.15g}").of(asked, run, seed)
    draws = np.random.Generator(np.random.PCG64([seed, round(factor * 1000)])).random(len(run))
    wanted = (
        np.maximum(np.rint(run * (1.0 + draws * (factor - 1.0))).astype(np.int64), run)
        if factor > 1
        else run
    )
    assert found.tolist() == wanted.tolist()


def test_the_f_model_is_uniform() -> None:
    run = np.full(20_000, 1000 * SECOND, np.int64)
    found = read_estimates("f:4").of(run, run, 3) / run
    counts, _ = np.histogram(found, bins=30, range=(1, 4))
    # 20,000 draws in 30 bins: 667 each, standard deviation 25.
    assert abs(counts - 20_000 / 30).max() < 5 * 26
    assert found.mean() == pytest.approx(2.5, abs=5 * 0.866 / 20_000**0.5)


@given(
    st.integers(0, 10**6),
    st.integers(0, 80),
    st.floats(0, 1),
    st.sampled_from(["log", "f:5", "rounded", "perfect"]),
)
def test_a_share_of_the_jobs_is_exact_and_the_others_are_as_without_it(
    seed: int, count: int, share: float, rest: str
) -> None:
    asked, run = jobs(count, seed)
    found = read_estimates(f"exact:share={share:.6f},rest={rest}").of(asked, run, seed)
    others = read_estimates(rest).of(asked, run, seed)
    assert ((found == run) | (found == others)).all()
    exact = int(round(share, 6) * count + 0.5)
    differing = int((others != run).sum())
    assert differing - exact <= int((found != run).sum()) <= min(differing, count - exact)


def test_the_jobs_of_a_smaller_share_are_among_those_of_a_larger_one_and_any_job_may_be() -> None:
    run = np.arange(1, 1001, dtype=np.int64) * SECOND
    chosen = [
        set(
            np.flatnonzero(
                read_estimates(f"exact:share={share},rest=f:9").of(run, run, 4) == run
            ).tolist()
        )
        for share in (0, 0.1, 0.25, 0.4, 1)
    ]
    assert [len(each) for each in chosen] == [0, 100, 250, 400, 1000]
    assert all(one <= other for one, other in pairwise(chosen))
    times = np.zeros(1000)
    for seed in range(200):
        times += read_estimates("exact:share=0.4,rest=f:9").of(run, run, seed) == run
    # Of 200 draws each job is exact in 80, standard deviation 7: no place in the log is preferred.
    assert abs(times - 80).max() < 5 * 7
    assert times[:500].mean() == pytest.approx(times[500:].mean(), abs=1)


@given(st.lists(st.integers(0, 10**12), max_size=40))
def test_rounded_lifts_to_the_next_value_that_people_type(estimates: list[int]) -> None:
    asked = np.array(estimates, np.int64)
    found = read_estimates("rounded").of(asked, asked // 2, 0)
    assert found.tolist() == [next_round(each) for each in estimates]


def test_what_is_round_stays_and_what_is_a_microsecond_more_is_lifted() -> None:
    values = [*POPULAR, 24 * HOUR, 48 * HOUR, 240 * HOUR]
    asked = np.array([each * SECOND for each in values], np.int64)
    rounded = read_estimates("rounded")
    assert (rounded.of(asked, asked, 0) // SECOND).tolist() == values
    assert (rounded.of(asked + 1, asked, 0) // SECOND).tolist() == [
        *values[1:-2],
        48 * HOUR,
        72 * HOUR,
        264 * HOUR,
    ]
    assert rounded.of(np.zeros(1, np.int64), np.zeros(1, np.int64), 0).tolist() == [300 * SECOND]


def test_rounded_takes_what_another_model_gives() -> None:
    asked, run = jobs(200)
    for inner in ("log", "perfect", "f:3", "exact:share=0.5"):
        found = read_estimates(f"rounded:of={inner}").of(asked, run, 8)
        assert found.tolist() == [
            next_round(each) for each in read_estimates(inner).of(asked, run, 8).tolist()
        ]


def test_tsafrir_is_the_model_of_the_run_times_of_these_jobs() -> None:
    asked, run = jobs(3000)
    found = read_estimates("tsafrir:largest=360000").of(asked, run, 2)
    assert (found // SECOND).tolist() == tsafrir_estimates(
        run / SECOND, seed=2, largest_s=360_000
    ).tolist()
    values, counts = np.unique(found, return_counts=True)
    assert np.sort(counts)[::-1][:20].sum() / len(run) == pytest.approx(0.89, abs=0.02)
    assert values[np.argmax(counts)] == 360_000 * SECOND
    with pytest.raises(
        UsageError,
        match=r"--estimates tsafrir: the largest estimate is 3600 s, but .* jobs run longer",
    ):
        read_estimates("tsafrir:largest=3600").of(asked, run, 2)


@given(
    st.integers(0, 10**6),
    st.sampled_from([text for text in TEXTS if text not in ("log", "rounded", "exact:share=0.4")]),
)
def test_no_model_but_the_log_and_what_is_built_on_it_gives_less_than_the_run_time(
    seed: int, text: str
) -> None:
    asked, run = jobs(150, seed)
    if "tsafrir" in text:
        run = run // 25  # the model does not allow many jobs that run nearly as long as the longest
    found = read_estimates(text).of(asked, run, seed)
    assert found.dtype == np.int64
    assert (found >= run).all()


@pytest.mark.parametrize("text", TEXTS)
def test_the_same_seed_gives_the_same_and_only_models_that_draw_heed_it(text: str) -> None:
    asked, run = jobs(400)
    model = read_estimates(text)
    before = asked.copy(), run.copy()
    one, again, other = model.of(asked, run, 1), model.of(asked, run, 1), model.of(asked, run, 2)
    assert one.tolist() == again.tolist()
    assert (asked.tolist(), run.tolist()) == (before[0].tolist(), before[1].tolist())
    assert (one.tolist() != other.tolist()) == (model.is_drawn and text not in ("exact", "f:1"))
    # The name that a record keeps names the same model.
    assert read_estimates(model.name).of(asked, run, 1).tolist() == one.tolist()
    assert read_estimates(model.name).name == model.name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("f:2.50", "f:2.5"),
        ("exact:share=1", "exact"),
        ("exact:rest=log,share=0.5", "exact:share=0.5"),
        ("rounded:of=log", "rounded"),
        ("tsafrir:largest=0", "tsafrir"),
        ("rounded:of=f:3.0", "rounded:of=f:3"),
        (
            "exact:rest=tsafrir,rest.largest=7200,share=0.5",
            "exact:share=0.5,rest=tsafrir:largest=7200",
        ),
        (
            "exact:share=0.5,rest=exact,rest.share=0.25,rest.rest=f:4",
            "exact:share=0.5,rest=exact:share=0.25,rest.rest=f:4",
        ),
    ],
)
def test_a_model_has_one_name(text: str, name: str) -> None:
    assert read_estimates(text).name == name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "wild",
            (
                r"there is no model 'wild' \(known: log, perfect, f:N, exact:share=S,rest=MODEL, "
                r"rounded"
            ),
        ),
        ("tsafir", "did you mean 'tsafrir'"),
        ("f", "write f:N, with a number"),
        ("f:", "write f:N, with a number"),
        ("f:0.5", "N=0.5 is not a number from 1 to 1000000"),
        ("f:x", "N=x is not a number from 1 to 1000000"),
        ("f:nan", "N=nan is not a number"),
        ("exact:share=1.5", "share=1.5 is not a number from 0 to 1"),
        ("exact:shares=1", "no parameter 'shares'; did you mean 'share'?"),
        ("exact:rest=wild", "there is no model 'wild'"),
        ("exact:rest=f:2,rest=f:3", "no parameter 'rest'"),
        ("perfect:share=1", r"no parameter 'share' \(it takes none\)"),
        ("rounded:of", "'of' is not a parameter; write name=value"),
        ("tsafrir:largest=-1", "largest=-1 is not a whole number from 0"),
        ("rounded:of=rounded:of=rounded:of=rounded:of=log", "models inside each other"),
        ("", "there is no model ''"),
    ],
)
def test_what_is_no_model_is_named_with_the_way_out(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        read_estimates(text)
    assert str(caught.value).startswith(f"--estimates {text!r}: ")


@given(st.text("exact:,=.rest05flogundmS", max_size=40) | st.text(max_size=12))
def test_any_text_is_a_model_or_refused(text: str) -> None:
    try:
        model = read_estimates(text)
    except UsageError:
        return
    assert read_estimates(model.name).name == model.name
    assert [read_estimates(each).name for each in split_estimates(f"{model.name},log")] == [
        model.name,
        "log",
    ]


def test_the_help_of_a_replay_names_every_model() -> None:
    command = typer.main.get_command(app).get_command(None, "replay")
    (option,) = [each for each in command.params if "--estimates" in each.opts]
    assert all(
        re.search(rf"\b{name}\b", option.help) for name in MODELS if name not in ("log", "perfect")
    )


def test_a_stretched_run_time_that_cannot_be_counted_is_refused() -> None:
    run = np.array([10**18], np.int64)
    with pytest.raises(
        UsageError, match="--estimates f:1000: makes a run time too long to count; use a smaller N"
    ):
        read_estimates("f:1000").of(run, run, 1)


def test_a_list_of_models_is_split_between_models_not_between_their_parameters() -> None:
    assert split_estimates("log,f:2") == ["log", "f:2"]
    assert split_estimates("exact:share=0.4,rest=f:5,log,tsafrir:largest=7200,rounded") == [
        "exact:share=0.4,rest=f:5",
        "log",
        "tsafrir:largest=7200",
        "rounded",
    ]
    assert split_estimates("rounded:of=f:3,exact:rest=tsafrir,rest.largest=7200,f:1") == [
        "rounded:of=f:3",
        "exact:rest=tsafrir,rest.largest=7200",
        "f:1",
    ]
    assert [read_estimates(each).name for each in split_estimates(",".join(TEXTS))] == [
        read_estimates(t).name for t in TEXTS
    ]


def test_the_document_has_every_model_in_its_form() -> None:
    document = (Path(__file__).parents[2] / "docs" / "how-to" / "choose-estimates.md").read_text(
        encoding="utf-8"
    )
    rows = dict(re.findall(r"^\| `(\S+)` \| (.*) \|$", document, re.MULTILINE))
    assert list(rows) == [model.form for model in MODELS.values()]


def test_a_replay_takes_any_model_and_all_models_are_tried_here() -> None:
    log = generate_log(jobs=400, procs=16, load=0.8, seed=3)
    for text in TEXTS:
        work = prepare(log, one_host(16), Options(estimates=text, seed=9))
        asked = prepare(log, one_host(16)).estimate
        assert work.estimate.tolist() == read_estimates(text).of(asked, work.logged_run, 9).tolist()
    assert {text.partition(":")[0] for text in TEXTS} == set(MODELS)
