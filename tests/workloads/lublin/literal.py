"""The model one job at a time, as docs/spec/workloads.md 2.1 defines it: no arrays, the walk
through the half hours, pending arrivals.

It takes the same draws as qbatch.workloads.lublin (element k of each stream is of job k of its
kind) and the same quantised weights of the half hours.  Everything else is written again, with the
logarithms of the C library and exact fractions for the clock.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, floor, log, sqrt

from qbatch.workloads.lublin import WEIGHT_UNIT, Parameters, Streams, bucket_weights

SIZE, STAGE, PLACE, BRANCH, RUN_FIRST, RUN_SECOND, GAP_FIRST, GAP_SECOND = range(1, 9)


class LiteralStream:
    """The jobs of one kind, in order of arrival."""

    def __init__(self, parameters: Parameters, streams: Streams, procs: int, jobs: int) -> None:
        self.parameters, self.streams, self.procs, self.jobs = parameters, streams, procs, jobs
        self.drawn: dict[tuple[int, int], list[float]] = {}
        self.weights = [
            Fraction(int(each), WEIGHT_UNIT)
            for each in bucket_weights(parameters.anum, parameters.bnum)
        ]
        self.bucket = 0
        self.points = self.remainder = Fraction(0)
        self.clock = 0
        self.arrived = self.made = 0
        self.advance()

    def draw(self, quantity: int, attempt: int, job: int) -> float:
        if (quantity, attempt) not in self.drawn:
            self.drawn[quantity, attempt] = self.streams.fractions(
                quantity, attempt, self.jobs + 1
            ).tolist()
        return self.drawn[quantity, attempt][job]

    def gamma(self, shape: float, scale: float, first: float, second: float) -> float | None:
        """Return a gamma variate, or None if the proposal is rejected (Cheng 1977)."""
        u, v = ((floor(each * 2**52) + 0.5) / 2**52 for each in (first, second))
        root = sqrt(2 * shape - 1)
        value = log(u / (1 - u)) / root
        x = shape * exp(value)
        if shape - log(4) + (shape + root) * value - x < log(u * u * v):
            return None
        return x * scale

    def gap(self) -> Fraction:
        attempt = 0
        while True:
            first, second = (
                self.draw(each, attempt, self.arrived) for each in (GAP_FIRST, GAP_SECOND)
            )
            value = self.gamma(
                self.parameters.aarr * self.parameters.arar, self.parameters.barr, first, second
            )
            if value is not None and value <= 13:
                return Fraction(floor(exp(value) / 1800 * WEIGHT_UNIT), WEIGHT_UNIT)
            attempt += 1

    def advance(self) -> None:
        """Go on to the next arrival of this kind."""
        self.points += self.gap()
        elapsed = Fraction(0)
        while self.points > self.weights[self.bucket]:
            self.points -= self.weights[self.bucket]
            self.bucket = (self.bucket + 1) % 48
            elapsed += 1800
        remainder = self.points / self.weights[self.bucket]
        elapsed += 1800 * (remainder - self.remainder)
        self.remainder = remainder
        self.clock = floor(self.clock + elapsed)
        self.arrived += 1

    def next_job(self) -> tuple[int, int]:
        """Return processors and run time of the next job of this kind."""
        p, job = self.parameters, self.made
        self.made += 1
        u = self.draw(SIZE, 0, job)
        size = 1
        if u > p.serial:
            low, high = (p.ulow, p.umed) if self.draw(STAGE, 0, job) <= p.uprob else (p.umed, p.uhi)
            x: float = low + self.draw(PLACE, 0, job) * (high - low)
            if u <= p.serial + p.pow2:
                x = floor(x + 0.5)
                while 2**x > self.procs:
                    x -= 1
            size = min(floor(2**x + 0.5), self.procs)
        share = min(max(p.pa * size + p.pb, 0.0), 1.0)
        attempt = 0
        while True:
            is_first = self.draw(BRANCH, attempt, job) < share
            shape, scale = (p.a1, p.b1) if is_first else (p.a2, p.b2)
            while True:
                first, second = (self.draw(each, attempt, job) for each in (RUN_FIRST, RUN_SECOND))
                value = self.gamma(shape, scale, first, second)
                attempt += 1
                if value is not None:
                    break
            if value <= 12:
                return size, int(exp(value))


def literal_jobs(
    sets: tuple[Parameters, ...], numbers: tuple[int, ...], seed: int, procs: int, jobs: int
) -> list[tuple[int, int, int, int]]:
    """Return arrival, run time, processors and kind of each job; of two pending at one instant, the
    first kind's."""
    kinds = [
        LiteralStream(each, Streams(seed, n), procs, jobs)
        for each, n in zip(sets, numbers, strict=True)
    ]
    found = []
    for _ in range(jobs):
        kind = min(range(len(kinds)), key=lambda each: (kinds[each].clock, each))
        size, run = kinds[kind].next_job()
        found.append((kinds[kind].clock, run, size, kind))
        kinds[kind].advance()
    return found
