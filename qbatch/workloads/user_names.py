"""The names of users in the header of a log, and which users may name a reservation.

A log has numbers of users.  An import and an export write a note for each: ``user 3 is ann``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from qbatch.model.machine import Machine, Reservation
from qbatch.model.record import Int64Array
from qbatch.workloads.header import Header
from qbatch.workloads.log import Log
from qbatch.workloads.resource_rows import ResourceRows

_NOTE = re.compile(r"user (-?\d{1,18}) is (.+)")


class UsersOfReservations(NamedTuple):
    """Rows of a log with jobs that name a reservation: those with a user that may not name it, and
    those with a user that has no name in the log."""

    refused: Int64Array
    unknown: Int64Array


def user_names(header: Header) -> dict[int, str]:
    """Return the name of each user of which the notes of a header have it."""
    found = (_NOTE.fullmatch(note) for note in header.notes)
    return {int(match[1]): match[2] for match in found if match}


def users_of_reservations(
    log: Log, machine: Machine, resources: ResourceRows | None
) -> UsersOfReservations:
    """Return the jobs with a user that may not, or perhaps may not, name their reservation.

    A user of a machine file (``users = ["ann", "7"]``) is a name in the header of the log, or the
    number of a user there.  Without a name of a job's user in the header, a reservation that lists
    names is not checked.
    """
    none = np.empty(0, np.int64)
    listed = {each.name: each for each in machine.reservations if each.users}
    if resources is None or not listed:
        return UsersOfReservations(none, none)
    names, column = user_names(log.header), np.asarray(log["user"])
    asked = [listed.get(each.reservation) for each in resources.requests]
    refused, unknown = [], []
    for row in np.flatnonzero(
        np.array([*(each is not None for each in asked), False])[resources.of]
    ):
        kept = asked[resources.of[row]]
        allowed = None if kept is None else may_name(kept, int(column[row]), names)
        if allowed is None:
            unknown.append(row)
        elif not allowed:
            refused.append(row)
    return UsersOfReservations(np.array(refused, np.int64), np.array(unknown, np.int64))


def may_name(kept: Reservation, user: int, names: Mapping[int, str]) -> bool | None:
    """Return whether a user of a log may name a reservation; None if that is not known."""
    listed = {each.partition("@")[0] for each in kept.users}
    if str(user) in listed or names.get(user) in listed:
        return True
    is_known = user in names or all(each.lstrip("-").isdigit() for each in listed)
    return False if is_known else None
