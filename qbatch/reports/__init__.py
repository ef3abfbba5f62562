"""Finished runs for readers: comparisons, plots, the page.

This package shows finished runs in words and pictures.  It computes no schedule and no metric.  No module imports matplotlib
or pyarrow at the top: they are heavy, belong to the extra ``report``, and are imported where they are used.
"""
