"""The pure core: events of one instant go in, checked actions come out.

What lives here: the states of a job, the mutable cluster (private), admission, the checking of actions, the
audit, the explanations.  What changes a running job is a verb of ``qbatch.planning.kernels.verbs``.  What must never
come in: a clock, a socket, a file, ``await``, randomness, and any policy: the engine receives one and hands it views.

Its face: ``qbatch.engine.engine.Engine``, ``qbatch.engine.round.Round``, ``qbatch.engine.states.State``; and
``qbatch.engine.snapshot``, which keeps an engine as bytes.
"""
