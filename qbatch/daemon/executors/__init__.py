"""Where jobs run: ``emulated`` (a timer on an emulated host) and ``process`` (a real script under a supervisor).

What lives here: launching, signalling and watching attempts, and reports of how they ended.  What must never come
in: the job table, the store, decisions; an executor knows attempts and run directories and nothing else.
"""
