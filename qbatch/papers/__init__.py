"""The laboratory: the experiments of published papers, run again, and their printed numbers beside ours.

What lives here: each paper in two files, ``NAME`` (what it prints, typed in with the errors it has, its cases, and how one is
simulated, on any log) and ``NAME_claims`` (tables, pictures and claims made of the runs, with what is known of the claims), and
what all papers share.  ``registry`` is the list of papers with their options.  ``harness`` makes runs and keeps them,
``replicas`` reads them, ``evidence`` judges a claim by intervals over replicas, ``pictures`` draws, ``record`` holds what every
paper hands out, and ``markdown`` makes one document of it.

What must never come in: a scheduling decision, a metric of our own, a policy.  A paper runs what everybody can run
with ``qbatch replay``; if an experiment needs something special, that belongs into the package of its kind first.  ``NAME`` must
not import ``NAME_claims``, nor ``harness``, ``record`` and ``evidence``: their changes would make all runs again.

Two words with a fixed meaning.  A *number* is compared with a printed one and is "within" a tolerance or "outside" of
it: logs were cleaned since, so numbers may differ and nothing fails.  A *claim* is what the paper concludes from its
numbers: it "holds" or "does not hold" on a log, or "cannot be checked" there.
"""
