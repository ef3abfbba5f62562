"""What each command does: one file a verb, found through one table that also says who may ask.

What lives here: functions of the core, the asker and the request.  What must never come in: a decision about who starts
when, a clock, a socket; and no check of permission of a handler's own: all go through :mod:`.authority`.
"""
