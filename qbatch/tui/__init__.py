"""The monitor (``qbatch top``): a board of facts, fed by a daemon's events or by a recording and
drawn by small panels.

This package holds the board (plain data, no screen), the sources that feed it, the panels that draw
it, and the screens that ask questions.  It does not import the daemon, the engine or a policy.  A
panel draws the board and sends requests to the source; it never polls, and it never changes the
board.
"""
