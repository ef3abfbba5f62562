"""What is done with a request of a client: it is read, permitted, answered or carried out, or
refused."""

from __future__ import annotations

import os
import re

import msgspec

from qbatch.daemon.connection import ConnectedClient, names_of
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.submission import check_server
from qbatch.daemon.handlers.verbs import permit
from qbatch.daemon.own_policies import is_own
from qbatch.daemon.questions.asking import ask, may_be_long, wait_for
from qbatch.daemon.service import Service
from qbatch.wire.errors import Refusal
from qbatch.wire.requests import (
    PROTOCOL,
    Alter,
    AnyRequest,
    Command,
    PolicySet,
    Request,
    Spec,
    Submit,
)
from qbatch.wire.resource_values import ResourceFault
from qbatch.wire.resources import check_resources

MOST_LONG_WAITS = 8
"""Long answers that a client may wait for at once; a further request for one is handled later."""

_UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_decoder = msgspec.json.Decoder(AnyRequest)


class _Head(msgspec.Struct):
    """The fields of a request that are read if the whole cannot be read."""

    v: int = PROTOCOL
    id: int = 0


def handle(service: Service, client: ConnectedClient, body: bytes) -> bool:
    """Answer or carry out a request, or refuse it; return False if it must wait
    (:data:`qbatch.daemon.connection.Handler`)."""
    try:
        request = _decoder.decode(body)
    except _UNREADABLE as error:
        _refuse_unreadable(client, body, error)
        return True
    if request.v != PROTOCOL:
        _refuse_version(client, request.id, request.v)
        return True
    is_long = may_be_long(request, body)
    if is_long and client.long_waits >= MOST_LONG_WAITS:
        return False
    if service.unread.must_wait(client, is_long=is_long):
        return False
    actor = client.actor
    try:
        permit(actor, request)
        if not isinstance(request, Command):
            ask(service, client, request)
            return True
        _check_entering(service.core, actor, request)
        if isinstance(request, PolicySet) and is_own(request.policy):
            wait_for(service, client, request, _set_own_policy(service, client, request, body))
        else:
            service.receive(client, request, body)
            client.uncommitted += 1
    except Refusal as error:
        client.fail(request.id, error)
    except Exception as error:
        client.fail(request.id, service.containment.question_failed(actor, request, error))
    return True


def _check_entering(core: Core, actor: Actor, request: Request) -> None:
    """Refuse what cannot be carried out here, before the request enters the journal: an accepted
    job stays accepted.

    Raises:
        Refusal: an illegal resource, a dependency on a job of another server, or a real job of
            another user, because the process executor runs jobs as the daemon's user only.
    """
    if not isinstance(request, Submit | Alter):
        return
    if (
        core.settings.executor == "process"
        and isinstance(request, Submit)
        and actor.uid != os.getuid()
    ):
        own = names_of(os.getuid(), os.getgid())[0]
        raise Refusal(
            "unsupported",
            f"executor process runs jobs of {own} only, the user of this daemon, not of "
            f"{actor.user}; start a daemon of "
            'your own with: qbatch up (or set executor = "emulated")',
        )
    wanted = request.spec if isinstance(request, Submit) else request.changes
    depend = wanted.depend or ""
    for name in re.split("[:,]", depend) if "@" in depend else ():
        check_server(core, name.partition("@")[2], os.uname().nodename)
    if wanted.resources:
        try:
            is_torque = isinstance(wanted, Spec) and wanted.is_torque
            check_resources(wanted.resources, is_torque=is_torque)
        except ResourceFault as fault:
            raise Refusal(fault.code, str(fault)) from None


async def _set_own_policy(
    service: Service, client: ConnectedClient, request: PolicySet, body: bytes
) -> None:
    await service.own_policies.admit([request.policy])
    async with service.quiet():
        service.receive(client, request, body)
        client.uncommitted += 1


def _refuse_unreadable(client: ConnectedClient, body: bytes, error: Exception) -> None:
    head, code = _Head(), "unknown-verb" if "`$.verb`" in str(error) else "bad-request"
    try:
        head = msgspec.json.decode(body, type=_Head)
    except _UNREADABLE:
        code = "bad-request"
    if head.v != PROTOCOL:
        _refuse_version(client, head.id, head.v)
    else:
        client.fail(head.id, Refusal(code, f"the request cannot be read: {error}"))


def _refuse_version(client: ConnectedClient, number: int, version: int) -> None:
    text = (
        f"the daemon speaks protocol {PROTOCOL}, the client {version}; upgrade the older of the two"
    )
    client.fail(number, Refusal("protocol-version", text))
