"""From a view to the compiled pass over hosts, and back to starts."""

from __future__ import annotations

import numpy as np

from qbatch.model.actions import Chunk, Start
from qbatch.planning.kernels import host_pass as host_passes
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.parts import open_parts
from qbatch.planning.view import View

_host_pass = live(host_passes.host_pass)

_NONE_HELD = np.empty((3, 0), np.int64)

Reserved = tuple[int, int, int]
"""A reservation: row, host, start."""


def pass_over_hosts(
    view: View, order: Int64Array, depth: int, *, is_stopping: bool = False, held: list[Reserved] | None = None
) -> tuple[list[Start], list[Reserved]]:
    """Make one pass (:func:`qbatch.planning.kernels.host_pass.host_pass`) and return the starts and the reservations.

    A machine of one pool is one host.  ``held``: reservations of the first rows of ``order``, which only move earlier.
    """
    pieces, running = _pieces(view)
    hosts = hosts_array(view)
    columns = view.columns
    kept = np.ascontiguousarray(np.array(held, np.int64).reshape(-1, 3).T) if held else _NONE_HELD
    started = np.empty((2, min(len(order), int(hosts[0].sum()))), np.int64)
    reserved = np.empty((3, min(depth, len(order)) + kept.shape[1]), np.int64)
    count, reservations = _host_pass(
        view.now, order, depth, is_stopping, columns.procs, columns.memory, columns.estimate, hosts, pieces, running,
        kept, started, reserved,
    )  # fmt: skip
    starts = [start_on(view, row, host) for row, host in started[:, :count].T.tolist()]
    return starts, [(row, host, at) for row, host, at in reserved[:, :reservations].T.tolist()]


def start_on(view: View, row: int, host: int) -> Start:
    """Return the start of a job on a host, with the memory that it asks for where memory counts."""
    if view.machine.is_one_pool:
        return Start(row)
    job = view.jobs[row]
    return Start(row, (Chunk(host, job.procs, job.memory if view.machine.hosts[host].memory else 0),))


def hosts_array(view: View) -> Int64Array:
    """Return free and whole amounts of each host, as the kernel takes them."""
    if view.machine.is_one_pool:
        return np.array([[view.free_procs], [0], [view.open_procs], [0]], np.int64)
    hosts = view.machine.hosts
    cpus = [0 if place in view.closed else host.cpus for place, host in enumerate(hosts)]
    return np.array([view.free, view.free_memory, cpus, [host.memory for host in hosts]], np.int64)


def _pieces(view: View) -> tuple[Int64Array, int]:
    """Return the running jobs in order of expected end, as the kernel takes them, and how many they are."""
    if view.pieces is not None:
        return open_parts(view)
    ends, amounts, count = view.expected_ends(0)
    pieces = np.zeros((4, count), np.int64)
    pieces[host_passes.END], pieces[host_passes.PROCS] = ends, amounts
    return pieces, count
