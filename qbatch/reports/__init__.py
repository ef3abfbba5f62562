"""What people read: tables, job rows, plots, exports.

What lives here: the writing and reading of results, and pictures of them.  What must never come in: the
computing of a schedule or of a metric, and any import of matplotlib or pyarrow at the top of a module (they
are heavy, belong to the extra ``report``, and are imported where they are used).
"""
