"""The policies: one module per family, and the registry that names them.

Policies are pure functions of a view.  A policy never uses the engine, a clock or a file, and never
holds its own queue; what it must remember is the record that ``new_memory`` makes.

To add a policy, write a class with ``decide`` (see README, "A policy of your own") in a module
here.  Then add an entry in ``registry.POLICIES`` with its source and parameters, and its line in
the oracle comparison (``tests/simulation/test_against_oracle.py``); the contract suite finds it
through the registry.

``qbatch.policies`` itself imports no kernel, so that listing policies does not load the compiler.
"""

from qbatch.policies.registry import POLICIES, PolicyEntry, load_policy

__all__ = ["POLICIES", "PolicyEntry", "load_policy"]
