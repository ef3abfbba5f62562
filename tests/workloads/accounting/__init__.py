"""Accounting files of PBS and Slurm, written as their manuals show them."""
