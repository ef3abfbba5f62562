"""The monitor (``qbatch top``): one board of facts, fed by a daemon's events or by a recording, drawn by small panels.

What lives here: the board (plain data, no screen), the sources that feed it, panels that draw it, screens that ask.
What must never come in: the daemon, the engine, a policy.  A panel draws the board and sends requests to the source; it
never polls, and it never changes the board.
"""
