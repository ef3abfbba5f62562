"""A self-contained HTML page about results: the runs, the metrics of the policies, every job, and
the confidence.

This package gathers results into a study and makes its tables, its charts as SVG that follows the
reader's light or dark mode, the columns that the page's own script draws, and the page itself.  The
script and the style sheet are in ``reports/assets``, the templates in ``reports/templates``.  The
package never computes a schedule or a metric, the page needs no network, and every user's text is
escaped.
"""
