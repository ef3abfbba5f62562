"""Brute force from the definition: what the engine is measured against.

Here live the schedules (`naive`), the metrics (`metrics`) and the nasty little workloads
(`workloads`) that tests compare the engine with. Everything is written straight from the words
of the design ("The meaning of one instant") and of the papers, for clarity and not for speed.

The rule of this package: nothing here imports qbatch. An oracle that borrows from what it judges
agrees with it for free.
"""
