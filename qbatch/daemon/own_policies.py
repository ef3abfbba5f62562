"""A user's own policies in the daemon: which ones a client may set, and a child process that loads
each one first.

Loading such a policy runs a module with the daemon's rights, so clients may set only policies of
the registry and those that the configuration lists.  A child process loads a policy before the
daemon does, because a module may end its process or never end its import.  The child is ``python -m
qbatch.daemon.own_policies POLICY``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from qbatch.model.errors import QbatchError, UsageError
from qbatch.planning.policy import Policy
from qbatch.policies.registry import POLICIES, announced, load_policy, own_class
from qbatch.wire.errors import Refusal

PATIENCE = 30.0
"""Seconds that loading a policy may take."""

LONGEST = 1000
"""Characters of a policy with its parameters, at most."""

_STEP = 0.01
"""Seconds between two looks at the child."""

_USABLE = b"usable"

_tried: set[str] = set()
"""The policies that a child of this process could load."""


class OwnPolicies:
    """The policies that clients may set.

    ``listed`` returns the policies that the configuration in force names; ``config``: the name of
    the configuration file.
    """

    def __init__(self, listed: Callable[[], Sequence[str]], config: str) -> None:
        self._listed = listed
        self._config = config
        self._one_at_a_time = asyncio.Lock()

    async def admit(self, policies: Sequence[str]) -> None:
        """Refuse policies that clients may not set; let a child load the others.

        Raises:
            Refusal: a policy is not listed, or cannot be loaded.
        """
        for policy in policies:
            asked = own_class(policy)
            if asked is not None and asked not in map(own_class, self._listed()):
                is_file = self._config != "built-in"
                place = (
                    f"{self._config}, then: qbatch reload"
                    if is_file
                    else "a file, and start with --config FILE"
                )
                raise Refusal(
                    "policy-not-listed",
                    f"policy {policy[:200]!r}: the socket sets only policies of the registry "
                    "(qbatch policies) and those that "
                    f'the configuration lists; to allow it, write policies = ["{asked[:200]}"] at '
                    f"the top of {place}",
                )
        for policy in policies:
            try:
                async with self._one_at_a_time:
                    await try_out(policy)
            except UsageError as error:
                raise Refusal("bad-value", str(error)) from None


async def try_out(policy: str) -> None:
    """Let a child process load a policy that is not built in, unless a child has already loaded it.

    Raises:
        UsageError: it cannot be loaded; the message has one line with the reason.
    """
    if policy not in _tried and is_own(policy):
        with _child_that_loads(policy) as is_over:
            while not is_over():
                await asyncio.sleep(_STEP)


def load_tried(policy: str) -> Policy:
    """Return a policy; if it is not built in, a child process loads it first.

    Raises:
        UsageError: it cannot be loaded; the message has one line with the reason.
    """
    if policy not in _tried and is_own(policy):
        with _child_that_loads(policy) as is_over:
            while not is_over():
                time.sleep(_STEP)
    return load_policy(policy)


def is_own(policy: str) -> bool:
    """Return whether a policy comes from a user's module or from another package."""
    head = policy.partition(":")[0]
    return head not in POLICIES and (own_class(policy) is not None or head in announced())


def policies_in(path: Path) -> list[str]:
    """Return the policies that a configuration file names, without reading anything else in it."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []  # reading it as a configuration raises an error with the reason
    tables = document.get("pool")
    pools = [each for each in tables if isinstance(each, dict)] if isinstance(tables, list) else []
    shadows = document.get("shadows")
    named = [
        document.get("policy"),
        *(each.get("policy") for each in pools),
        *(shadows if isinstance(shadows, list) else ()),
    ]
    return [each for each in named if isinstance(each, str)]


@contextmanager
def _child_that_loads(policy: str) -> Iterator[Callable[[], bool]]:
    """Let a child load a policy; give a function that returns whether the child has ended or its
    time is over.

    At the end the child and the processes that it started are ended.

    Raises:
        UsageError: the policy cannot be loaded.
    """
    if len(policy) > LONGEST or not policy.isprintable():
        raise UsageError(f"policy {policy[:80]!r}: at most {LONGEST} printable letters are allowed")
    deadline = time.monotonic() + PATIENCE
    process = subprocess.Popen(
        [sys.executable, "-m", "qbatch.daemon.own_policies", policy],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def has_ended() -> bool:  # it is not reaped, so that its number stays its own
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    try:
        yield lambda: time.monotonic() >= deadline or has_ended()
    finally:
        is_late = not has_ended()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.stdout is not None
    with process.stdout as file:
        os.set_blocking(file.fileno(), False)  # a process of the module may hold the other end
        answer = file.read() or b""
    if answer == _USABLE:
        _tried.add(policy)
        return
    code = process.returncode
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    reason = (
        f"it is not loaded after {PATIENCE:.0f} s"
        if is_late
        else f"it ends the process that loads it ({how})"
    )
    raise UsageError(
        answer.decode("utf-8", "replace") if answer else f"policy {policy[:200]!r}: {reason}"
    )


def main(policy: str) -> None:
    """Load a policy in the child, print whether it is usable or why not, and end at once."""
    signal.alarm(int(PATIENCE) + 5)  # in case the daemon is gone
    answer, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nothing, number)
    try:
        load_policy(policy)
        text = _USABLE
    except QbatchError as error:
        text = str(error).encode("utf-8", "replace")
    os.write(answer, text[:4096])
    os._exit(0)  # despite threads and exit functions of the module


if __name__ == "__main__":
    main(sys.argv[1])
