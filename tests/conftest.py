"""Options of the suite, and caches that never touch the user's own."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("qbatch", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("qbatch")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--policy", action="append", default=[], help="run the contract suite against this policy only (module:Class)"
    )
