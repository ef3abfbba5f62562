"""Machines that are shipped."""
