"""The compiled inner loop of the workloads room: it turns the bytes of a log into numbers.

What must never come in: opening a file, deciding what a row means, raising an error; odd tokens are marked and left
to the room.
"""
