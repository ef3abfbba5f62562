"""An entry of the registry: the facts about a policy."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from qbatch.model.errors import UsageError
from qbatch.model.machine import Machine
from qbatch.model.parameters import Parameter
from qbatch.planning.policy import Policy


class PolicyEntry(msgspec.Struct, frozen=True):
    """One registered policy: how to make it, what it does, its source, its parameters.

    ``is_wrapper``: it is made with an ``inner`` policy, and takes its parameters as ``inner.key``.  ``is_interrupting``:
    jobs may run in several execution intervals, and promises of an inner policy may break.  ``is_for_single_hosts``: it refuses
    machines on which a job may span hosts, except (``takes_chunks``) those with chunks.  ``is_for_pools``: it refuses machines on
    which more than the number of free processors decides.  ``breaks_promises``: starts that an inner policy promises may be
    delayed.
    """

    make: Callable[..., Policy]
    meaning: str
    source: str
    parameters: tuple[Parameter, ...] = ()
    is_wrapper: bool = False
    is_interrupting: bool = False
    is_for_single_hosts: bool = False
    takes_chunks: bool = True
    is_for_pools: bool = False
    breaks_promises: bool = False

    def takes(self, machine: Machine) -> bool:
        """Return whether the policy works on a machine."""
        is_divided = machine.spans_hosts or (machine.chunked and not self.takes_chunks)
        return not (self.is_for_single_hosts and is_divided) and (machine.is_one_pool or not self.is_for_pools)


def check_single_hosts(machine: Machine, name: str, what: str, *, takes_chunks: bool = True) -> None:
    """Refuse a machine on which a job may be on several hosts, for a policy that keeps it inside one.

    Args:
        name: of the policy.
        what: a phrase about what is inside one host, for the message.
        takes_chunks: machines on which jobs ask for chunks are accepted.

    Raises:
        UsageError: names the way out.
    """
    if machine.spans_hosts or (machine.chunked and not takes_chunks):
        raise UsageError(
            f"policy {name}: {what}, and jobs may span the hosts of this machine; "
            "write single_host = true in the machine file, or choose another policy"
        )
