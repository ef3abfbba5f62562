"""The laboratory: the experiments of published papers, run again, and their printed numbers beside ours.

What lives here: one paper in a few files that share its name - ``..._printed`` (what the paper prints, typed in, with
the errors it has), ``..._runs`` (the experiments, on any log), ``..._verdicts`` and ``..._model`` (tables and claims
out of the figures of the runs), ``..._figures`` (its pictures) - and one file without a suffix that ties them
together.  ``record`` holds what every paper hands out, ``markdown`` makes one document of it.  ``evidence`` judges a claim by
intervals over replicas, ``kept`` is a folder that keeps runs, ``processes`` shares them among cores.  ``registry`` is the list of
papers.

What must never come in: a scheduling decision, a metric of our own, a policy.  A paper runs what everybody can run
with ``qbatch replay``; if an experiment needs something special, that belongs into the room of its kind first.

Two words with a fixed meaning.  A *number* is compared with a printed one and is "within" a tolerance or "outside" of
it: logs were cleaned since, so numbers may differ and nothing fails.  A *claim* is what the paper concludes from its
numbers: it "holds" or "does not hold" on a log, or "cannot be checked" there.
"""
