"""The public logs: what the Parallel Workloads Archive has, and the way from it to a file of this user.

What lives here: the catalogue (``catalogue.toml``, facts with their sources) and the names that find a log in it (``entries``),
the cache of fetched logs with their checksums (``cache``), and the download (``fetching``, by pooch, which is loaded only when
something is downloaded).  What must never come in: reading of logs, and any fact that has no source.
"""

from qbatch.workloads.catalogue.cache import Cache
from qbatch.workloads.catalogue.entries import CLEANED, KINDS, UNFILTERED, Catalogue, Entry, Version, load_catalogue
from qbatch.workloads.catalogue.fetching import fetch

__all__ = [
    "CLEANED",
    "KINDS",
    "UNFILTERED",
    "Cache",
    "Catalogue",
    "Entry",
    "Version",
    "fetch",
    "load_catalogue",
]
