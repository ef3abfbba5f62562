"""Options of the suite, and caches that never touch the user's own."""

from __future__ import annotations

import gc
import os
import signal
import tempfile

import pytest
from hypothesis import HealthCheck, settings

from qbatch.wire.paths import cache_directory

# A suite that a shell started in the background ignores interrupts, and so would every command that
# it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A command that has a home of its own need not compile the kernels again.
os.environ.setdefault("QBATCH_CACHE", str(cache_directory()))

# Login shells of jobs read the profile files of an empty home directory, not those of the user who
# runs the tests. Such files may take a lock.  A job that is killed leaves it behind, and then every
# later shell waits for it.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _home = tempfile.TemporaryDirectory(prefix="qbatch-tests-home-")
    os.environ["HOME"] = _home.name

# Nothing here multiplies matrices: no process need start threads for it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile(
    "qbatch", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("qbatch")


WAITING = (
    "test_live_hosts.py",
    "test_live_slices.py",
    "test_dask_hosts.py",
    "test_dask_faults.py",
    "test_live.py",
)
"""Files with tests that mostly wait, for scripts that run and for processes that die.  They come
first: for five minutes the other workers have the processors, and at the end no worker waits for
these tests."""

LONGEST = ("test_blocks.py",)
"""The file of the longest single tests, which type whole documents: another worker begins with
them."""

BROWSER = ("test_browser.py",)
"""The file of the tests that share a browser and its pages: a third worker begins with them, as no
other worker steals the tests that one begins with."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Each worker has a part of the order to begin with.
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    apart = (*WAITING, *LONGEST, *BROWSER)
    others = [item for item in items if item.path.name not in apart]
    ordered: list[pytest.Item] = []
    for number, names in enumerate((WAITING, LONGEST, BROWSER)):
        begin = len(items) * min(number, workers - 1) // workers
        before = max(begin - len(ordered), 0)
        ordered += others[:before]
        del others[:before]
        ordered += [item for item in items if item.path.name in names]
    items[:] = [*ordered, *others]


def pytest_collection_finish() -> None:
    # What ten thousand collected tests hold lives to the end: no collection, here or in a forked
    # child, looks through it again.
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--policy",
        action="append",
        default=[],
        help="run the contract suite against this policy only (module:Class)",
    )
