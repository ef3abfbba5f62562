"""What people read: comparisons, plots, the page.

What lives here: finished runs in words and pictures.  What must never come in: the
computing of a schedule or of a metric, and any import of matplotlib or pyarrow at the top of a module (they
are heavy, belong to the extra ``report``, and are imported where they are used).
"""
