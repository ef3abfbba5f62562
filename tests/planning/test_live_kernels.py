"""A live engine serves with plain Python until the compiler is done: nothing compiles, nothing
differs."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from qbatch.engine import snapshot
from qbatch.engine.engine import Engine
from qbatch.planning.kernels import availability, entries, equal_shares, jit, order, plan, profile
from qbatch.policies import load_policy
from tests.engine.live import MACHINES, Life, pairs
from tests.harness import size

ROOT = Path(__file__).resolve().parents[2]


def fingerprint() -> str:
    """Return a hash of lives under every policy on every kind of machine."""
    digest = hashlib.sha256()
    for name, where in pairs():
        machine = MACHINES[where]
        life, engine = Life(7, machine), Engine(machine, load_policy(name))
        for _ in range(size(15, 40)):
            drawn = life.next(engine)
            assert drawn is not None
            life.account(engine, engine.handle(*drawn))
            for row in engine.view().queue[:2].tolist():
                digest.update(engine.explain(row).text.encode())
        digest.update(snapshot.dump(engine))
    return digest.hexdigest()


SERVE_UNCOMPILED = """
import sys
from qbatch.planning.kernels.jit import Kernel
from qbatch.planning.kernels.entries import serve_uncompiled, serve_compiled
if sys.argv[1] == "before":
    serve_uncompiled()
from tests.planning.test_live_kernels import fingerprint
if sys.argv[1] == "after":
    serve_uncompiled()
found = fingerprint()
compiled = [
    f"{name}.{key}"
    for name, module in sys.modules.items() if ".kernels." in name
    for key, value in vars(module).items() if isinstance(value, Kernel) and value.signatures
]
print(found, compiled)
serve_compiled()
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_uncompiled_nothing_is_compiled_and_nothing_differs(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The suite is also run uncompiled, to count lines; here the compiler is what is looked at.
    is_few = jit.IS_PLAIN or when == "after"
    monkeypatch.setenv("QBATCH_FEW_POLICIES", str(int(is_few)))
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    environment = {**kept, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SERVE_UNCOMPILED, when],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [fingerprint(), "[]"]
    assert list(tmp_path.rglob("*.nbi")) == []


def test_the_doors_of_this_process_can_be_switched_in_the_middle_of_a_life() -> None:
    machine = MACHINES["chunks"]
    for name in ("easy", "conservative", "hybrid"):
        dumps = []
        for switches in (False, True):
            life, engine = Life(11, machine), Engine(machine, load_policy(name))
            try:
                for step in range(60):
                    if switches and step % 10 == 0:
                        entries.serve_uncompiled() if step % 20 == 0 else entries.serve_compiled()
                    drawn = life.next(engine)
                    assert drawn is not None
                    life.account(engine, engine.handle(*drawn))
            finally:
                entries.serve_compiled()
            dumps.append(snapshot.dump(engine))
        assert dumps[0] == dumps[1]
    assert entries.serves_compiled()


def test_a_twin_calls_twins_only() -> None:
    seen: set[int] = set()

    def look(function: object) -> None:
        assert not hasattr(function, "py_func"), function
        if id(function) in seen:
            return
        seen.add(id(function))
        for name in function.__code__.co_names:  # type: ignore[attr-defined]
            value = function.__globals__.get(name)  # type: ignore[attr-defined]
            assert not hasattr(value, "py_func"), name
            if hasattr(value, "__code__"):
                look(value)

    for kernel in (
        plan.compress,
        availability.earliest,
        order.in_order,
        profile.earliest,
        equal_shares.share_pass,
    ):
        assert entries.uncompiled(kernel) is entries.uncompiled(kernel)
        look(entries.uncompiled(kernel))
    assert entries.uncompiled(len) is len


COUNT_MISSES = """
import sys
from qbatch.engine import snapshot
from qbatch.engine.engine import Engine
from qbatch.planning.kernels.jit import Kernel
from qbatch.policies import load_policy
from tests.engine.live import MACHINES, Life
for machine in MACHINES.values():
    for seed in range(4):
        life, engine = Life(seed, machine), Engine(machine, load_policy("easy"))
        for _ in range(50):
            life.account(engine, engine.handle(*life.next(engine)))
            for row in engine.view().queue.tolist():
                engine.explain(row)
        engine = snapshot.load(machine, load_policy("easy"), snapshot.dump(engine))
        for _ in range(10):
            life.account(engine, engine.handle(*life.next(engine)))
print([
    f"{name}.{key}"
    for name, module in sys.modules.items() if ".kernels." in name
    for key, value in vars(module).items()
    if isinstance(value, Kernel) and value.signatures and sum(value.compiled.stats.cache_misses.values())
])
"""


def test_a_child_process_warms_the_cache_and_leaves_a_stamp(tmp_path: Path) -> None:
    # The suite is also run uncompiled, to count lines; here the compiler is what is looked at.
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    environment = {**kept, "NUMBA_CACHE_DIR": str(tmp_path)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            env=environment,
            cwd=ROOT,
            check=False,
        )

    look = (
        "-c",
        "from qbatch.daemon.warm import is_warm; print(is_warm(['fcfs']), is_warm(['easy']))",
    )
    assert run(*look).stdout.split() == ["False", "False"]
    done = run("-m", "qbatch.daemon.warm", "easy")
    assert (done.returncode, done.stderr) == (0, "")
    assert run(*look).stdout.split() == ["False", "True"]
    assert run("-c", COUNT_MISSES).stdout.split() == ["[]"]
    done = run("-m", "qbatch.daemon.warm", "no-such-policy")
    assert done.returncode == 2
    assert "no policy" in done.stderr


def test_warming_a_policy_of_groups_compiles_its_search() -> None:
    """A live pass that forms the first group must not wait for the compiler."""
    code = (
        "from qbatch.daemon.warm import warm; warm(['scojo-groups'])\n"
        "from qbatch.planning.kernels import discrepancy, slices\n"
        "print(*(len(each.signatures) for each in (discrepancy.search, discrepancy.merged, "
        "discrepancy.place_in_order,"
        " slices.fill_in, slices.of_other_classes)))"
    )
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True, env=kept
    )
    assert min(map(int, done.stdout.split())) >= 1, done.stdout
