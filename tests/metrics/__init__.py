"""Tests of the metrics room and of ``qbatch metrics``."""
