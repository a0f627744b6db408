"""Hooks: callers create and delete them; applications send notices to their URLs."""

import time
from typing import Annotated, ClassVar

from aiohttp import web
from pydantic import Field

from gateway.contract.hooks import HookView, NoticeAnswer
from gateway.errors import Forbidden
from gateway.http.bodies import Body, json_response, path_id, read_body, read_bytes
from gateway.http.keys import CALLER, SERVICES
from gateway.identity.model import id_of
from gateway.telemetry.metrics import NOTICE_SECONDS

#: maximum bytes of a notice
MAX_NOTICE = 2**20


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
    hooks = request.app[SERVICES].inbound_webhooks
    return _hook_response(await hooks.create(request[CALLER], path_id(request, "connector_id"), body.secret))


async def get_hook(request: web.Request) -> web.Response:
    """The connector's hook, without its secrets."""
    hooks = request.app[SERVICES].inbound_webhooks
    return _hook_response(await hooks.get(request[CALLER], path_id(request, "connector_id")))


async def delete_hook(request: web.Request) -> web.Response:
    """Deletes the hook with its secrets: its URL accepts no more notices."""
    await request.app[SERVICES].inbound_webhooks.delete(request[CALLER], path_id(request, "connector_id"))
    return web.Response(status=204)


async def receive_notice(request: web.Request) -> web.Response:
    """Receives a notice of an application, with the application's own signature or handshake; 403 for a notice that is
    not signed or too old. The response is sent once the notice is stored. The gateway brings the copies' next
    synchronizations forward and does not trust the notice's content.
    """
    services, started = request.app[SERVICES], time.perf_counter()
    try:
        hook = await services.inbound_webhooks.find(id_of(request.match_info["hook_id"]))
        body = await read_bytes(request, MAX_NOTICE)
        query = request.rel_url.raw_query_string
        receipt = await services.inbound_webhooks.receive(hook, request.method, query, request.headers, body)
    except Forbidden:
        await services.attempts.require("notices to hooks", request.remote or "")
        raise
    NOTICE_SECONDS.observe(time.perf_counter() - started, hook.kind)
    return json_response(NoticeAnswer(receipt.challenge), headers=dict([receipt.header] if receipt.header else []))
