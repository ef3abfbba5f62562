"""The compiled inner loop of the reports room: columns of numbers become the text of rows.

What must never come in: anything that a library does as well; compile time is budgeted.
"""
