"""The screens that lie over the panels: a job, a host, a question, the keys.

What must never come in: the state of the server (that is the board's) or anything that is asked more than once without
something having happened; the one thing that is looked at again and again is the file that a job writes.
"""
