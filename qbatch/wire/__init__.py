"""What goes over the socket: frames, messages, the version of the protocol, and the PBS syntax that both ends read.

What lives here: pure functions and frozen values (sans-IO), imported by the daemon and by the short commands.  What
must never come in: sockets, clocks, files, NumPy, asyncio, and anything that takes long to import.

The protocol: each frame is a length of four bytes, big-endian, and that many bytes of JSON (one object).  A client
sends requests (``verb`` names one of the structs of :mod:`qbatch.wire.requests`; ``v`` is the protocol's version;
``id`` comes back with the reply) and gets one reply each, in any order: ``{"id": 1, "result": {...}}`` or
``{"id": 1, "error": {"code": "unknown-job", "message": "...", "pbs": 15001, "exit": 6}}``.  After ``subscribe`` the
daemon also sends ``{"event": {...}}``.  Who asks is known from the socket, never from the message.
"""
