"""One self-contained HTML page about results: what was run, how the policies did, every job to look at, how sure it is.

What lives here: the gathering of results into a study, its tables, its charts as SVG that follows the reader's light or
dark, the columns that the page's own script draws, and the page itself.  The script and the style sheet lie in
``reports/assets``, the templates in ``reports/templates``.  What must never come in: the computing of a schedule or of a
metric, a link that the page would need the network for, and any text of a user's that is put into the page unescaped.
"""
