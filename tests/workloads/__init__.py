"""Tests of :mod:`qbatch.workloads` and of ``qbatch trace``."""
