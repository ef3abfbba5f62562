"""Tests of :mod:`qbatch.metrics` and of ``qbatch metrics``."""
