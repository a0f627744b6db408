"""Hooks: callers create and delete them; applications send notices to their URLs."""

import logging
import time
from typing import Annotated, ClassVar

from aiohttp import web
from pydantic import Field

from gateway.access.identity.model import Scope, id_of
from gateway.contract.hooks import HookView, NoticeAnswer
from gateway.errors import BodyTooLarge, Forbidden
from gateway.foundation.aio.turns import compute_for
from gateway.foundation.telemetry.metrics import NOTICE_SECONDS, NOTICES
from gateway.web.bodies import Body, json_response, path_id, read_body, read_bytes
from gateway.web.keys import ACCESS, CALLER, SERVICES
from gateway.web.route import CONNECTOR, Route

log = logging.getLogger(__name__)


class CreateHook(Body):
    """The secret that the application signs its notices with."""

    EXAMPLES: ClassVar = {"secret": {"secret": "8f742231b10e8888abcd99yyyzzz85a5"}, "handshake": {}}

    secret: Annotated[str, Field(min_length=1, max_length=500)] | None = Field(
        None, description="the secret with which the application signs its notices; leave it out if a handshake sets it"
    )


def _hook_response(hook: HookView) -> web.Response:
    return json_response(hook, headers={"Cache-Control": "no-store"})


async def create_hook(request: web.Request) -> web.Response:
    """Returns the URL that receives the application's webhooks, and stores the secret that they are signed with.
    Notices bring synchronizations forward. Repeat the request to replace the secret, while the previous one stays
    valid, or to allow handshakes to set the secret for another hour.
    """
    body = await read_body(request, CreateHook) if request.body_exists else CreateHook(secret=None)
    hooks = request.app[SERVICES].copy.notices
    return _hook_response(await hooks.create(request[CALLER], path_id(request, "connector_id"), body.secret))


async def get_hook(request: web.Request) -> web.Response:
    """The connector's hook, without its secrets."""
    hooks = request.app[SERVICES].copy.notices
    return _hook_response(await hooks.get(request[CALLER], path_id(request, "connector_id")))


async def delete_hook(request: web.Request) -> web.Response:
    """Deletes the hook with its secrets: its URL accepts no more notices."""
    await request.app[SERVICES].copy.notices.delete(request[CALLER], path_id(request, "connector_id"))
    return web.Response(status=204)


async def receive_notice(request: web.Request) -> web.Response:
    """Receives a notice of an application, with the application's own signature or handshake; 403 for a notice that is
    not signed or too old. The response is sent once the notice is stored. The gateway brings the copies' next
    synchronizations forward and does not trust the notice's content.
    """
    services, started = request.app[SERVICES], time.perf_counter()
    try:
        hook = await services.copy.notices.find(id_of(request.match_info["hook_id"]))
        compute_for(hook.organization_id)
        body = await read_bytes(request.clone(client_max_size=services.settings.max_notice_bytes))
        query = request.rel_url.raw_query_string
        receipt = await services.copy.notices.receive(hook, request.method, query, request.headers, body)
    except BodyTooLarge:
        NOTICES.add(hook.kind, "too_large")
        log.warning(
            "a notice was refused: it is larger than GATEWAY_MAX_NOTICE_BYTES",
            extra={"connector_id": str(hook.connector_id), "kind": hook.kind},
        )
        raise
    except Forbidden:
        await request.app[ACCESS].attempts.require("notices to hooks", request.remote or "")
        raise
    NOTICE_SECONDS.observe(time.perf_counter() - started, hook.kind)
    return json_response(NoticeAnswer(receipt.challenge), headers=dict([receipt.header] if receipt.header else []))


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        CONNECTOR + "/hook",
        create_hook,
        "Create the URL for the application's webhooks",
        "Connectors",
        body=CreateHook,
        has_optional_body=True,
        response=HookView,
        sends={200: ("Cache-Control",)},
        scope=Scope.WRITE,
        audit="hook.create",
    ),
    Route(
        "GET",
        CONNECTOR + "/hook",
        get_hook,
        "Get the URL for the application's webhooks",
        "Connectors",
        response=HookView,
        sends={200: ("Cache-Control",)},
        scope=Scope.WRITE,
    ),
    Route(
        "DELETE",
        CONNECTOR + "/hook",
        delete_hook,
        "Delete the URL for the application's webhooks",
        "Connectors",
        answers={204: "Deleted"},
        scope=Scope.WRITE,
        audit="hook.delete",
    ),
    Route(
        "POST",
        "/hooks/{hook_id}",
        receive_notice,
        "Receive a notice of an application",
        "Connectors",
        response=NoticeAnswer,
        answers={200: "The notice is stored"},
        errors=(403, 413),
        is_open=True,
    ),
)
