"""The metrics of the daemon in the Prometheus text format."""

from __future__ import annotations

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.service import Service
from qbatch.wire.records import Text
from qbatch.wire.requests import Metrics


def handle(service: Service, client: ConnectedClient, request: Metrics) -> Text:
    """Return counters and gauges."""
    core, passes = service.core, service.pass_driver.pass_times
    lines: list[str] = []

    def add(name: str, kind: str, text: str, values: list[tuple[str, float]]) -> None:
        lines.append(f"# HELP qbatch_{name} {text}")
        lines.append(f"# TYPE qbatch_{name} {kind}")
        lines.extend(f"qbatch_{name}{labels} {value:.17g}" for labels, value in values)

    jobs = [(f'{{queue="{name}",state="{letter}"}}', float(count))
            for name, queue in core.queues.items() for letter, count in sorted(queue.letter_counts.items())]  # fmt: skip
    add("jobs", "gauge", "Jobs by queue and state.", jobs)
    add("jobs_ended_total", "counter", "Jobs that have ended.", [("", core.ended_count)])
    add("jobs_submitted_total", "counter", "Sequence numbers given out.", [("", core.next_sequence - 1)])
    add("commits_total", "counter", "Commits of the journal.", [("", service.commits)])
    add("passes_total", "counter", "Scheduling passes.", [("", passes.count)])
    add("pass_seconds_total", "counter", "Seconds spent in passes.", [("", passes.seconds)])
    add("pass_seconds_max", "gauge", "The longest pass.", [("", passes.longest)])
    add("connections", "gauge", "Connected clients.", [("", len(service.clients))])
    hosts = [(f'{{pool="{pool.settings.name}"}}', float(sum(pool.engine.view().free))) for pool in core.pools]
    add("free_processors", "gauge", "Free processors of open hosts, by pool.", hosts)
    return Text(text="\n".join(lines) + "\n")
