"""Tests of what runs jobs: everything is run for real."""
