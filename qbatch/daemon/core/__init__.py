"""The batch server as a pure state machine: jobs, queues, holds, dependencies, arrays, around one
engine a pool.

What lives here: the job table and everything that the journal replays after a crash.  Commands,
reports and passes go in with their instants; replies come out, and an outbox of effects.  What must
never come in: a clock, a socket, a file, an ``await``, or a draw that is not seeded.  The same
inputs must give the same state, to the bit, on every replay.
"""
