"""Options of the suite, and caches that never touch the user's own."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from qbatch.wire.paths import cache_directory

# A suite that a shell started in the background ignores interrupts, and so would every command that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A command that has a home of its own need not compile the kernels again.
os.environ.setdefault("QBATCH_CACHE", str(cache_directory()))

settings.register_profile("qbatch", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("qbatch")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--policy", action="append", default=[], help="run the contract suite against this policy only (module:Class)"
    )
