"""The daemon: drives the engine in real, scaled or virtual time, and answers commands over a Unix socket.

What lives here: the batch server as a pure state machine (``core``: jobs, queues, holds, dependencies, arrays around
the engine), one function a verb (``handlers`` change the core, ``questions`` ask), the store (SQLite), the executors, the
clock, the connections.
What must never come in: scheduling decisions (they are made in ``policies``), text for a terminal (``cli``), and in
``core`` and ``handlers`` any clock, socket, file or ``await``: what they do is replayed after a crash.
"""
