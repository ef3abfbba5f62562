"""The daemon: drives the engine in real, scaled or virtual time, and answers commands over a Unix
socket.

The batch server is a pure state machine (``core``: jobs, queues, holds, dependencies and arrays
around the engine).  Each verb is one function (``handlers`` change the core, ``questions`` read
it).  The package also holds the store (SQLite), the executors, the clock and the connections.

Scheduling decisions belong to ``policies``, text for a terminal to ``cli``.  ``core`` and
``handlers`` never use a clock, socket, file or ``await``, because what they do is replayed after a
crash.
"""
