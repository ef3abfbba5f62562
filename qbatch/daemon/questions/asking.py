"""Requests that only ask, or that are about the daemon itself: functions of (service, client, request)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.questions import (
    backup,
    check,
    config_show,
    explain,
    forecast,
    hello,
    history,
    host_status,
    job_output,
    job_status,
    metrics,
    queue_status,
    reload,
    server_status,
    shadow,
    shutdown,
    subscribe,
    time,
    trail,
    upload,
    wait,
)
from qbatch.daemon.service import Service
from qbatch.model.errors import QbatchError
from qbatch.wire import requests
from qbatch.wire.errors import Refusal

_CHANGING = (requests.Reload, requests.Time, requests.Shutdown)

_LONG_ANSWERS = (requests.JobStatus, requests.History, requests.Trail)
"""Questions whose answers are read from the store and may be long: of one connection one at a time, once it has read the last."""

_MAY_BE_LONG = (*_LONG_ANSWERS, requests.HostStatus, requests.QueueStatus, requests.Forecast, requests.Metrics)

SHORT = 4096
"""Bytes of a request that does not name much: its answer is short, but for questions about all jobs, hosts or queues."""

MOST_WAITS = 1000
"""Questions of one connection that may wait for their answers (``wait``, ``history``, forecasts)."""

ASKERS: dict[type[requests.Request], Callable[..., Any]] = {
    requests.Hello: hello.handle,
    requests.JobStatus: job_status.handle,
    requests.QueueStatus: queue_status.handle,
    requests.HostStatus: host_status.handle,
    requests.ServerStatus: server_status.handle,
    requests.Explain: explain.handle,
    requests.Wait: wait.handle,
    requests.Trail: trail.handle,
    requests.JobOutput: job_output.handle,
    requests.History: history.handle,
    requests.Subscribe: subscribe.handle,
    requests.Time: time.handle,
    requests.Forecast: forecast.handle,
    requests.Shadow: shadow.handle,
    requests.Upload: upload.handle,
    requests.Metrics: metrics.handle,
    requests.Backup: backup.handle,
    requests.Check: check.handle,
    requests.ConfigShow: config_show.handle,
    requests.Reload: reload.handle,
    requests.Shutdown: shutdown.handle,
}
"""What each of them answers; one that has to wait returns a coroutine."""


def may_be_long(request: requests.Request, body: bytes) -> bool:
    """Tell whether the answer to a request may be long."""
    return isinstance(request, _MAY_BE_LONG) or len(body) > SHORT


def ask(service: Service, client: ConnectedClient, request: requests.Request) -> None:
    """Answer at once, or when the answer is there.

    Raises:
        Refusal: it is refused.
    """
    answer = ASKERS[type(request)](service, client, request)
    if not asyncio.iscoroutine(answer):
        client.reply(request.id, answer)
    else:
        wait_for(service, client, request, answer)


def wait_for(service: Service, client: ConnectedClient, request: requests.Request, answer: Coroutine[Any, Any, Any]) -> None:
    """Answer when the answer is there; where it is None, the request is answered by a commit.

    Raises:
        Refusal: too many answers are waited for.
    """
    if len(client.waits) >= MOST_WAITS:
        answer.close()
        raise Refusal(
            "busy", f"{MOST_WAITS} questions of this connection wait for their answers; wait for some of them"
        )
    client.long_waits += isinstance(request, _LONG_ANSWERS)
    task = asyncio.get_running_loop().create_task(_later(service, client, request, answer))
    client.waits.add(task)
    task.add_done_callback(client.waits.discard)


async def _later(service: Service, client: ConnectedClient, request: requests.Request, answer: Coroutine[Any, Any, Any]) -> None:
    try:
        if isinstance(request, _LONG_ANSWERS):
            async with client.long_answers:
                await client.has_read()
                client.reply(request.id, await answer)
        elif (result := await answer) is not None:
            client.reply(request.id, result)
    except Refusal as error:
        client.refuse(request, error)
    except QbatchError as error:
        client.refuse(request, Refusal({74: "storage", 3: "unusable"}.get(error.exit_code, "failed"), str(error)))
    except asyncio.CancelledError:
        raise
    except Exception as error:
        failed = (
            service.containment.command_failed
            if isinstance(request, _CHANGING)
            else service.containment.question_failed
        )
        client.refuse(request, failed(client.actor, request, error))
        service.commit_soon()
    finally:
        answer.close()  # where its turn never came
        if isinstance(request, _LONG_ANSWERS):
            client.long_waits -= 1
            client.may_go_on()
