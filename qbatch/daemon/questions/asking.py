"""The answers to questions and to requests about the daemon itself: at once, or when the answer is
there."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from qbatch.daemon.connection import ConnectedClient
from qbatch.daemon.handlers.verbs import HANDLERS
from qbatch.daemon.service import Service
from qbatch.model.errors import QbatchError
from qbatch.wire.errors import Refusal
from qbatch.wire.requests import Question, Request

SHORT = 4096
"""Bytes up to which a request names few things: its answer is short, except for questions about all
jobs, hosts or queues."""

MOST_WAITS = 1000
"""Questions of one connection that may wait for their answers (``wait``, ``history``,
forecasts)."""


def may_be_long(request: Request, body: bytes) -> bool:
    """Return whether the answer to a request may be long."""
    return (isinstance(request, Question) and request.answer != "short") or len(body) > SHORT


def _is_stored(request: Request) -> bool:
    """Return whether the answer comes from the store.  A connection gets one such answer at a time,
    once it has read the last."""
    return isinstance(request, Question) and request.answer == "stored"


def ask(service: Service, client: ConnectedClient, request: Request) -> None:
    """Answer a request at once, or when the answer is there; a request that is not allowed is
    refused."""
    answer = HANDLERS[type(request)](service, client, request)
    if asyncio.iscoroutine(answer):
        wait_for(service, client, request, answer)
    else:
        client.reply(request.id, answer)


def wait_for(
    service: Service, client: ConnectedClient, request: Request, answer: Coroutine[Any, Any, Any]
) -> None:
    """Answer a request when the answer is there, unless too many wait; if the answer is None, a
    commit answers it."""
    if len(client.waits) >= MOST_WAITS:
        answer.close()
        raise Refusal(
            "busy",
            (
                f"{MOST_WAITS} questions of this connection wait for their answers; wait for some "
                "of "
                "them"
            ),
        )
    client.long_waits += _is_stored(request)
    task = asyncio.get_running_loop().create_task(_later(service, client, request, answer))
    client.waits.add(task)
    task.add_done_callback(client.waits.discard)


async def _later(
    service: Service, client: ConnectedClient, request: Request, answer: Coroutine[Any, Any, Any]
) -> None:
    try:
        if _is_stored(request):
            async with client.long_answers:
                await client.has_read()
                client.reply(request.id, await answer)
        elif (result := await answer) is not None:
            client.reply(request.id, result)
    except Refusal as error:
        client.fail(request.id, error)
    except QbatchError as error:
        client.fail(
            request.id,
            Refusal({74: "storage", 3: "unusable"}.get(error.exit_code, "failed"), str(error)),
        )
    except asyncio.CancelledError:
        raise
    except Exception as error:
        is_driving = isinstance(request, Question) and request.is_driving
        failed = (
            service.containment.command_failed
            if is_driving
            else service.containment.question_failed
        )
        client.fail(request.id, failed(client.actor, request, error))
        service.commit_soon()
    finally:
        answer.close()  # if its turn never came
        if _is_stored(request):
            client.long_waits -= 1
            client.may_go_on()
