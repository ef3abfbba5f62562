"""The referee checks a finished schedule against its policy, from the schedule alone; and the
conformance set for simulators.

This package never calls the engine or a policy: a referee that asks the scheduler would repeat its
mistakes.
"""
