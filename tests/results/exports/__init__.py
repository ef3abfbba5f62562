"""Exports: what other programs read is what the result says."""
