"""Ids and names in the paths of requests: whatever text they are, they stay one segment."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway import errors
from gateway.client import Gateway

CALLS: dict[str, Callable[[Gateway, str], Awaitable[Any]]] = {
    "a job": lambda gateway, name: gateway.jobs.get(name),
    "an approval": lambda gateway, name: gateway.approvals.deny(name, digest="0"),
    "a connector": lambda gateway, name: gateway.connectors.get(name),
    "a kind": lambda gateway, name: gateway.type(name),
    "an app": lambda gateway, name: gateway.apps.delete(name),
    "a policy": lambda gateway, name: gateway.policies.delete(name),
    "a budget": lambda gateway, name: gateway.budgets.delete(name),
    "a webhook": lambda gateway, name: gateway.webhooks.rotate(name),
    "a person": lambda gateway, name: gateway.people.remove(name),
    "a group": lambda gateway, name: gateway.people.group(name),
    "a schedule": lambda gateway, name: gateway.schedules.run(name),
    "a session": lambda gateway, name: gateway.sessions.end(name),
    "an issuer": lambda gateway, name: gateway.issuers.delete(name),
}


@pytest.fixture
def paths() -> list[str]:
    """The paths of requests, as they were sent; those for tokens are not in it."""
    return []


@pytest.fixture
async def client(paths: list[str]) -> AsyncIterator[Gateway]:
    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith("/token"):
            return web.json_response({"access_token": "t"})
        paths.append(request.raw_path)
        return web.Response(status=404)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server, Gateway(str(server.make_url("")), "id", "s3cret") as gateway:
        yield gateway


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_an_id_stays_one_segment_or_nothing_is_sent(client, paths, call):
    for name in ("", ".", ".."):
        with pytest.raises(errors.InvalidParams, match="no id and no name"):
            await call(client, name)
    assert paths == []

    with pytest.raises(errors.NotFound):
        await call(client, "../a?b#c%2e")
    [sent] = paths
    assert "/..%2Fa%3Fb%23c%252e" in sent
