"""``--policy``: of this folder, only what is about the policies that were named."""

from __future__ import annotations

from pathlib import Path

import pytest

from qbatch.model.errors import UsageError
from qbatch.policies import load_policy

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of this folder that are about other policies, or about none."""
    chosen = config.getoption("--policy")
    if not chosen:
        return
    for policy in chosen:
        try:
            load_policy(policy)
        except UsageError as error:
            raise pytest.UsageError(f"--policy: {error}") from None
    left_out = [
        item for item in items if HERE in item.path.parents and _policy_of(item) not in chosen
    ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _policy_of(item: pytest.Item) -> str | None:
    parameters = getattr(item, "callspec", None)
    return None if parameters is None else parameters.params.get("policy")
