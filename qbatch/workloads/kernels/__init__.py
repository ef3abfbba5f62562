"""The compiled inner loop of workloads: it turns the bytes of a log into numbers.

It never opens a file, decides what a row means, or raises an error; it marks unusual tokens and
leaves them to the rest of the package.
"""
