"""The availability profile equals a brute-force model, second by second, compiled and
uncompiled."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.planning.kernels import availability
from qbatch.planning.kernels import profile as kernels
from qbatch.planning.kernels.entries import uncompiled
from qbatch.planning.kernels.tables import JobColumns, no_requests

HORIZON = 60
CAPACITY = 9

spans = st.tuples(st.integers(0, HORIZON), st.integers(0, HORIZON), st.integers(1, 4)).map(
    lambda span: (min(span[:2]), max(span[:2]), span[2])
)


def free_at(profile: np.ndarray, instant: int) -> int:
    return int(profile[kernels.FREE, kernels.segment_at(profile, instant)])


def model_of(changes: list[tuple[int, int, int]]) -> list[int]:
    free = [CAPACITY] * (HORIZON + 1)
    for start, end, amount in changes:
        for second in range(start, end):
            free[second] -= amount
    return free


def profile_of(changes: list[tuple[int, int, int]]):
    profile = kernels.new_profile(CAPACITY, 0, 16)
    for start, end, amount in changes:
        if not kernels.has_room(profile, 1):
            profile = kernels.grown(profile)
        kernels.add(profile, start, end, -amount)
    return profile


def segments(profile) -> list[tuple[int, int]]:
    return list(zip(*profile[:, 1 : profile[0, 0] + 1].tolist(), strict=True))


def fitting(model: list[int], amount: int, start: int, duration: int) -> bool:
    return all(model[min(second, HORIZON)] >= amount for second in range(start, start + duration))


@given(st.lists(spans, max_size=25))
def test_free_is_what_the_model_says_at_every_second(changes: list[tuple[int, int, int]]) -> None:
    profile = profile_of(changes)
    assert [free_at(profile, second) for second in range(HORIZON + 1)] == model_of(changes)


@given(st.lists(spans, max_size=25))
def test_segments_are_ascending_and_joined(changes: list[tuple[int, int, int]]) -> None:
    found = segments(profile_of(changes))
    assert all(one[0] < two[0] and one[1] != two[1] for one, two in pairwise(found))


@given(st.lists(spans, max_size=20), spans)
def test_reserving_and_giving_back_restores_the_identical_profile(
    changes: list[tuple[int, int, int]], extra: tuple[int, int, int]
) -> None:
    profile = kernels.grown(profile_of(changes))
    before = segments(profile)
    start, end, amount = extra
    kernels.add(profile, start, end, -amount)
    kernels.add(profile, start, end, amount)
    assert segments(profile) == before


@given(
    st.lists(spans, max_size=20),
    st.integers(1, CAPACITY),
    st.integers(1, 20),
    st.integers(0, HORIZON),
)
@settings(max_examples=300)
def test_earliest_is_the_first_second_that_fits(
    changes: list[tuple[int, int, int]], amount: int, duration: int, not_before: int
) -> None:
    model = model_of(changes)
    expected = next(
        second
        for second in range(not_before, 2 * HORIZON + 1)
        if fitting(model, amount, second, duration)
    )
    assert kernels.earliest(profile_of(changes), amount, duration, not_before) == expected


@given(
    st.lists(spans, max_size=20),
    st.integers(1, CAPACITY),
    st.integers(0, HORIZON),
    st.integers(0, 20),
)
def test_fits_looks_at_every_second_of_the_span(
    changes: list[tuple[int, int, int]], amount: int, start: int, length: int
) -> None:
    assert kernels.fits(profile_of(changes), amount, start, start + length) == fitting(
        model_of(changes), amount, start, max(length, 1)
    )


@given(
    st.lists(st.tuples(st.lists(spans, max_size=12), st.integers(1, 9)), min_size=2, max_size=5),
    st.integers(1, 15),
)
def test_all_resources_of_a_host_together(
    resources: list[tuple[list[tuple[int, int, int]], int]], duration: int
) -> None:
    models = [(model_of(changes), amount) for changes, amount in resources]
    expected = next(
        second
        for second in range(2 * HORIZON + 1)
        if all(fitting(model, amount, second, duration) for model, amount in models)
    )
    asked = np.array([[amount] for _, amount in resources], np.int64)
    none = np.zeros(1, np.int64)
    jobs = JobColumns(none, none, none, asked, no_requests())
    hosts = np.full((2, len(resources), 1), 1000, np.int64)
    for kernel in (availability.earliest, uncompiled(availability.earliest)):
        none_run = np.empty((2 + len(resources), 0), np.int64)
        free = availability.filled(0, hosts, none_run, 0, 2)
        free.level[0, 0] = CAPACITY
        for resource, (changes, _) in enumerate(resources):
            for start, end, amount in changes:
                part = np.zeros((2 + len(resources), 1), np.int64)
                part[2 + resource] = amount
                free = availability.change(part, start, end, -1, free)
        taken = np.zeros((2 + len(resources), 1), np.int64)
        assert kernel(0, 0, kernels.FOREVER, duration, jobs, hosts, free, taken) == expected


@given(st.lists(spans, max_size=20), st.integers(0, HORIZON))
def test_forgetting_the_past_keeps_the_future(
    changes: list[tuple[int, int, int]], now: int
) -> None:
    profile = profile_of(changes)
    kernels.forget_before(profile, now)
    assert [free_at(profile, second) for second in range(now, HORIZON + 1)] == model_of(changes)[
        now:
    ]


@given(
    st.lists(spans, max_size=20),
    st.integers(1, CAPACITY),
    st.integers(1, 20),
    st.integers(1, HORIZON),
)
def test_an_earlier_place_is_searched_as_if_the_reservation_were_lifted_out(
    changes: list[tuple[int, int, int]], amount: int, duration: int, asked: int
) -> None:
    profile = kernels.grown(profile_of(changes))
    planned = kernels.earliest(profile, amount, duration, asked)
    without = [tuple(segment) for segment in segments(profile)]
    kernels.add(profile, planned, planned + duration, -amount)
    found = kernels.window_between(profile, amount, duration, 0, planned, planned)
    kernels.add(profile, planned, planned + duration, amount)
    assert segments(profile) == without
    assert found == kernels.earliest(profile, amount, duration, 0)


@given(
    st.lists(spans, max_size=12),
    st.integers(1, CAPACITY),
    st.integers(1, 20),
    st.integers(0, HORIZON),
)
@settings(max_examples=60)
def test_the_uncompiled_kernels_say_the_same(
    changes: list[tuple[int, int, int]], amount: int, duration: int, low: int
) -> None:
    profile = profile_of(changes)
    compiled = kernels.window_between
    plain = getattr(compiled, "py_func", compiled)
    ends = (kernels.FOREVER, kernels.FOREVER)
    assert plain(profile, amount, duration, low, *ends) == compiled(
        profile, amount, duration, low, *ends
    )
