"""The panels of the monitor, one file each: each draws one part of the board.

What must never come in: sockets and requests; a panel reads the board, keeps a cursor, and posts messages.  Two of
them show what only an answer holds (history, forecasts): the application asks and hands it to them.
"""
