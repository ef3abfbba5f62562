"""The experiments of published papers, run again, with their printed numbers next to ours.

Each paper has two modules.  ``NAME`` holds its printed numbers, with their errors, its cases, and
the simulation of one case on any log.  ``NAME_claims`` makes tables, pictures and claims of the
runs, and holds the known verdicts of the claims.  ``registry`` lists the papers with their options,
``harness`` makes and stores runs, ``replicas`` reads them, and ``evidence`` judges a claim by
intervals over replicas.  ``pictures`` draws, ``record`` holds the outcome of a paper, and
``markdown`` makes a document of it.

This package never holds a scheduling decision, a metric or a policy: a paper runs what every user
can run with ``qbatch replay``.  ``NAME`` must not import ``NAME_claims``, ``harness``, ``record``
or ``evidence``: a change of these would repeat all runs.

A *number* is compared with a printed one and is "within" a tolerance or "outside" of it: logs were
cleaned since, so numbers may differ and nothing fails.  A *claim* is a conclusion of the paper from
its numbers: it "holds" or "does not hold" on a log, or "cannot be checked" there.
"""
