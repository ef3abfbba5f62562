"""The compiled inner loop of job rows: it writes columns of numbers as the text of rows.

It never repeats what a library does as well, because compile time is limited.
"""
