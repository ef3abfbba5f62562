"""What a decision is made of: the view that a policy sees, the policy protocol, the profile, the kernels.

Pure: no clock, no file, no randomness.  What must never come in: a particular policy, the mutable cluster.
"""
