"""The contract of a policy: what every policy owes, whatever it decides.

Runs over every registered policy, and over your own: ``pytest tests/contract --policy
mymodule:MyPolicy``.
"""
