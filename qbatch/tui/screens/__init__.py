"""The screens over the panels: a job, a host, a question, the keys.

A screen never holds the state of the server (the board does) and never repeats a request unless
something has happened. Only the output file of a job is read again and again.
"""
