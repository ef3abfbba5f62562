"""List schedulers as kernels: an order of the queue, a number of reservations, and whether they stay."""

from __future__ import annotations

import numpy as np

from qbatch.model.machine import Machine
from qbatch.model.record import Workload
from qbatch.planning.kernels import lists
from qbatch.planning.kernels.orders import FCFS, LOOP_ORDERS, PRIORITY
from qbatch.planning.kernels.tables import ENDS, NO_PARTS, PARTS, Needs
from qbatch.planning.policy import Compiled, ListRules


def compiled_list(rules: ListRules, machine: Machine) -> Compiled:
    """Return the kernel of a list scheduler on a machine.

    On a pool a pass counts free processors.  Where reservations stay, or the order is a priority, the pass for hosts is used on a
    pool too: the pool is one host.
    """
    from qbatch.planning.spaces import PoolSpace, space_of

    if space_of(machine) is not PoolSpace or rules.is_sticky or rules.order == "priority":
        return Compiled(
            lists.decide_on_hosts,
            Needs(reads=PARTS, has_hosts=True),
            lambda work, _: _host_list(rules, len(work)),
        )
    one_pass = lists.shadow_pass if rules.depth == 1 else lists.profile_pass
    one_pass = lists.stopping_pass if rules.is_stopping else one_pass
    order, has_profile = LOOP_ORDERS[rules.order], one_pass is lists.profile_pass

    def new_memory(work: Workload, machine: Machine) -> lists.PoolList:
        running = min(len(work), machine.procs) + 1
        space = 8 * running + 4 * min(rules.depth, len(work)) if has_profile else 0
        return lists.PoolList(order, rules.depth, np.zeros((2, space + 16), np.int64))

    reads = NO_PARTS if rules.is_stopping else ENDS
    return Compiled(lists.pool_scheduler(one_pass, order != FCFS), Needs(reads=reads), new_memory)


def _host_list(rules: ListRules, rows: int) -> lists.HostList:
    """Return the memory of a list scheduler of hosts for so many jobs."""
    return lists.HostList(
        LOOP_ORDERS.get(rules.order, PRIORITY), rules.depth, np.array(rules.weights, np.float64), rules.is_stopping,
        rules.is_sticky, np.zeros(rows), np.empty((3, rows if rules.is_sticky else 0), np.int64), np.zeros(1, np.int64),
    )  # fmt: skip
