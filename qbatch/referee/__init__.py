"""The referee: what a finished schedule owes, checked by the schedule alone, and the conformance set for simulators.

What must never come in: a call of the engine or of a policy; a referee that asks the player sees nothing.
"""
