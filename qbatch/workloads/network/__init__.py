"""The closed network: N jobs that go round between processors with queues of their own and one I/O station.

What lives here: the numbers of the network and how they are typed (``parameters``), and its draws, by job, visit and purpose
(``draws``).
What must never come in: routing, queues and time; the source that plays the network is in ``replay``.

Source: H. D. Karatza and R. C. Hilzer, *Performance analysis of parallel job scheduling in distributed systems*, 36th Annual
Simulation Symposium, 2003; exact readings in docs/spec/papers.md 5.5.
"""

from qbatch.workloads.network.draws import NetworkDraws
from qbatch.workloads.network.parameters import Network, read_network

__all__ = ["Network", "NetworkDraws", "read_network"]
