"""The pure core: events of one instant go in, checked actions come out.

The package never uses a clock, a socket, a file, ``await`` or randomness, and contains no policy:
the engine receives one and passes views to it.  Public: ``qbatch.engine.engine.Engine``,
``qbatch.engine.round.Round``, ``qbatch.engine.states.State``; and ``qbatch.engine.snapshot``, which
keeps an engine as bytes.
"""
