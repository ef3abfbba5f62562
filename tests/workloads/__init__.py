"""Tests of the workloads room and of ``qbatch trace``."""
