"""The closed network: N jobs that circulate between processors with their own queues and one I/O station.

Contents: the parameters of the network and their text form (``parameters``), and its draws, by job, visit and purpose
(``draws``).  The package never contains routing, queues or time; the source that runs the network is in ``replay``.

Source: H. D. Karatza and R. C. Hilzer, *Performance analysis of parallel job scheduling in distributed systems*, 36th Annual
Simulation Symposium, 2003; exact readings in docs/spec/papers.md 5.5.
"""

from qbatch.workloads.network.draws import NetworkDraws
from qbatch.workloads.network.parameters import Network, read_network

__all__ = ["Network", "NetworkDraws", "read_network"]
