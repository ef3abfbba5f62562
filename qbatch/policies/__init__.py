"""How to decide: one module per family of policies, and the registry that names them.

What lives here: pure functions of a view.  What must never come in: the engine, a clock, a file; a policy never
holds a queue of its own, what it must remember is the record that ``new_memory`` makes.

To add a policy: a class with ``decide`` (see README, "A policy of your own") in a module here, an entry in
``registry.POLICIES`` with its source and parameters, its line in the oracle comparison
(``tests/replay/test_against_oracle.py``); the contract suite finds it through the registry.

``qbatch.policies`` itself imports no kernel, so that listing policies does not load the compiler.
"""

from qbatch.policies.entry import PolicyEntry
from qbatch.policies.registry import POLICIES, load_policy

__all__ = ["POLICIES", "PolicyEntry", "load_policy"]
