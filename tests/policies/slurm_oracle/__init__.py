"""A slow and plain simulator of how Slurm 22.05 decides, to be held against recordings of a real Slurm.

Its modules:

- `recording` reads what a real Slurm did, `site` the files of its site, `requests` what a job asks for;
- `world` holds jobs and nodes at one instant;
- `nodes` chooses nodes and searches the earliest start, `reservations` and `limits` say what is forbidden;
- `priority` orders, `dependencies` and `arrays` say what may be looked at, `refusals` what is not taken at all;
- `preemption` and `gang` free hosts for better jobs;
- `passes` is the main pass, backfill and the estimates of sched/builtin;
- `replay` runs a recording again and compares, `clock` does so at instants of its own.

Nothing here is fast, and nothing here is imported by qbatch. Rules were found in the recordings and in the published
behaviour of Slurm 22.05.8; each function names its source. Where a docstring says "in no recording", the rule is only
read, not seen.
"""
