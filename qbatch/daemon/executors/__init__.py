"""Where jobs really run: a script under a supervisor.  (Emulated jobs are timers: ``daemon/core/execution.py``.)

What lives here: launching, signalling and watching attempts, and reports of how they ended.  What must never come
in: the job table, the store, decisions; an executor knows attempts and run directories and nothing else.
"""
