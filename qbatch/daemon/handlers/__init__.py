"""What changes the core: one file a verb, found through one table; and the table that says who may ask for what.

What lives here: pure functions of the core, the asker and the request, replayed from the journal after a crash.  What
must never come in: a decision about who starts when, a clock, a socket, a file, an ``await``; and no check of permission
of a handler's own: all go through :mod:`.authority`.  Who only asks is answered in ``questions``.
"""
