"""A GPU cluster of today, generated: its hosts and partitions, the jobs of some days with what they
ask for, and their statistics next to published ones.

``hosts`` is the machine, ``kinds`` the kinds of jobs with their distributions, ``generate`` draws
the jobs, ``marginals`` measures them.  The package never writes a file.  The model is fitted to no
cluster.  Its numbers are chosen so that the statistics come near those of published GPU clusters
(docs/reference/cluster-workload.md).
"""

from qbatch.workloads.cluster.generate import GeneratedCluster, cluster_log, generate_cluster
from qbatch.workloads.cluster.marginals import MARGINALS, Marginal

__all__ = ["MARGINALS", "GeneratedCluster", "Marginal", "cluster_log", "generate_cluster"]
