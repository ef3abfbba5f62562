"""A slow and plain simulator of how Slurm 22.05 decides, to be held against recordings of a real Slurm.

Its modules are `recording` (reads what a real Slurm did), `site` (reads the files of its site), `requests` (what a job
asks for), `nodes` (which nodes a job takes), `reservations`, `limits`, `priority`, `preemption`, `passes` (main pass
and backfill) and `replay` (runs a recording again and compares). Nothing here is fast, and nothing here is imported
by qbatch.

Rules were found in the recordings and in the published behaviour of Slurm 22.05.8; each function names its source.
"""
