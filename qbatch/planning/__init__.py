"""What policies are written with: the view of the state, the policy protocol, the availability
profile, the kernels.

Pure: no clock, no file, no randomness.  The package never contains a particular policy or the
mutable cluster.
"""
