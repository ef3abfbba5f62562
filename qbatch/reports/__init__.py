"""Finished runs for readers: comparisons, plots, the page.

This package shows finished runs in words and pictures.  It never computes a schedule or a metric.
No module imports matplotlib or pyarrow at the top: they are heavy, belong to the extra ``report``,
and are imported where they are used.
"""
