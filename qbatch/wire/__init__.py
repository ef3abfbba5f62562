"""The protocol of the socket: frames, messages, the protocol's version, and the PBS syntax that
both ends read.

The package holds pure functions and frozen values (sans-IO), which the daemon and the short
commands import.  It must not use sockets, clocks, files, NumPy, asyncio or anything that takes long
to import.

A frame is a length of four bytes, big-endian, and that many bytes of JSON (one object).  In a
request, ``verb`` names one of the structs of :mod:`qbatch.wire.requests`, ``v`` is the protocol's
version, and ``id`` comes back with the reply.  Each request gets one reply; replies come in any
order: ``{"id": 1, "result": {...}}`` or ``{"id": 1, "error": {"code": "unknown-job", "message":
"...", "pbs": 15001, "exit": 6}}``.  After ``subscribe`` the daemon also sends ``{"event": {...}}``.
The daemon reads the user of a request from the socket, never from the message.
"""
