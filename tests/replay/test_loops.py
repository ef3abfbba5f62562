"""The compiled loops are found again on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from qbatch.planning.kernels import jit
from qbatch.replay.kernels import loops

LOOPS: dict[str, Callable[[], Any]] = {
    **{f"pass {which}": lambda which=which: loops.pass_loop(which, False) for which in range(loops.ROUND_LSF + 1)},
    "plan": lambda: loops.plan_loop(loops.COMPRESS_ARRIVAL),
}


@pytest.mark.skipif(jit.cache_folder() is None, reason="kernels are not compiled here, or there is no cache")
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_closes_over_numbers_only(name: str) -> None:
    # Numba finds code on disk by the values that a function closes over.  Those of another kernel are new in each process:
    # every run would compile the whole loop again.
    function = LOOPS[name]().py_func
    constants = [cell.cell_contents for cell in function.__closure__ or ()]
    assert constants
    assert {type(constant) for constant in constants} <= {int, bool}
