"""Finished runs as files: job rows, result directories, pieces, logs that are schedules, exports to other formats.

What lives here: the writing and reading of what a run left, and which results may stand side by side.  What must never come
in: the computing of a schedule, a judgement on one, pictures and pages.
"""
