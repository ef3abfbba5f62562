"""The public logs: the contents of the Parallel Workloads Archive, and their download to this
user's files.

Contents: the catalogue (``catalogue.toml``, facts with their sources), the names of its logs
(``entries``), the cache of fetched logs with their checksums, and the download into it
(``fetching``).  The download is by pooch, which is loaded only for it.  The package never reads
logs, and never contains a fact without a source.
"""

from qbatch.workloads.catalogue.entries import (
    CLEANED,
    KINDS,
    UNFILTERED,
    Catalogue,
    Entry,
    Version,
    load_catalogue,
)
from qbatch.workloads.catalogue.fetching import Cache, fetch

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
