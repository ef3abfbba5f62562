"""The panels of the monitor, one file each; each draws one part of the board.

Panels never use sockets or send requests: a panel reads the board, keeps a cursor, and posts
messages.  Two of them show answers (history, forecasts), which the application requests and passes
on.
"""
