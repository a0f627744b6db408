"""No answer of an application of the largest size holds the event loop, whatever its shape."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from unittest.mock import patch

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.upstream.transport import ANSWER_CAP
from tests.harness.blocked_loop import LIMIT, LongestCallback, measured
from tests.harness.caller import Api, ConnectorApi
from tests.harness.hostile_kinds import write_kind
from tests.harness.in_process import FrontEnd, front_end
from tests.web.test_policies import run_jobs

#: other tests beside them would be measured too
pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("without_collections")]

SIZE = ANSWER_CAP - 1000
PIECE = 1 << 18


def repeated(item: bytes) -> bytes:
    return b",".join([item] * (SIZE // (len(item) + 1)))


#: bodies by name
BODIES: dict[str, Callable[[], bytes]] = {
    "records": lambda: b'{"items":[' + repeated(b'{"id":"12345678","name":"a name","state":"open"}') + b"]}",
    "small records": lambda: b'{"items":[' + repeated(b"{}") + b"]}",
    "nulls": lambda: b'{"items":[' + repeated(b"null") + b"]}",
    "a large record": lambda: b'{"items":[{"id":"1","name":"' + b"x" * SIZE + b'"}]}',
    "members": lambda: b'{"items":[],"rest":{' + repeated(b'"a":1') + b"}}",
    "other members": lambda: b'{"items":[],' + b",".join(b'"k%d":1' % n for n in range(SIZE // 13)) + b"}",
    "a cursor": lambda: b'{"items":[],"paging":{"next_cursor":[' + repeated(b'"ab"') + b"]}}",
    "extreme numbers": lambda: b'{"items":[' + repeated(b"1e-320") + b"]}",
    "a cursor of extreme numbers": lambda: b'{"items":[],"paging":{"next_cursor":[' + b"1e-320," * 140_000 + b"1]}}",
    "halves": lambda: b'{"items":[' + repeated(b'{"id":"\\ud83d"}') + b"]}",
    "not ASCII": lambda: b'{"items":[' + repeated('{"id":"éé"}'.encode()) + b"]}",
    "no JSON": lambda: b"<" * SIZE,
}
#: members of the call by the way in which the records are passed on
WAYS: dict[str, dict[str, object]] = {"plain": {}, "fields": {"select_fields": ["id", "name"]}}


#: where a kind looks for failures in responses with the status of a success
FAILURE = {
    "code": ["errors.0.code"],
    "message": ["errors.0.message"],
    "when_present": ["errors", "items.*.errors", "paging.*.errors"],
    "when_equal": {"items.0.status": "error"},
}


async def in_pieces(request: web.Request, body: bytes, status: int) -> web.StreamResponse:
    """The response of the application, in short callbacks: it shares the front end's event loop."""
    response = web.StreamResponse(status=status, headers={"Content-Type": "application/json"})
    response.content_length = len(body)
    await response.prepare(request)
    for start in range(0, len(body), PIECE):
        await response.write(body[start : start + PIECE])
        await asyncio.sleep(0)
    return response


@pytest.fixture(scope="module")
async def front(tmp_path_factory, database_url: str, redis_url: str) -> AsyncIterator[FrontEnd]:
    root = tmp_path_factory.mktemp("specs")
    write_kind(root, "echo")
    write_kind(root, "strict", failure=FAILURE)
    made: dict[str, bytes] = {}

    async def answer(request: web.Request) -> web.Response:
        name, _, status = request.query.get("cursor", "").partition("/")
        if name not in made:
            made.clear()
            made[name] = BODIES[name]()
        return await in_pieces(request, made[name], int(status or 200))

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(application) as server:
        origin = str(server.make_url("/").origin())
        with patch.dict(os.environ, {"GATEWAY_UPSTREAM_ECHO": origin, "GATEWAY_UPSTREAM_STRICT": origin}):
            async with front_end(tmp_path_factory.mktemp("front"), database_url, redis_url, specs=(root,)) as opened:
                yield opened


@pytest.fixture(scope="module")
async def connector(front: FrontEnd) -> AsyncIterator[ConnectorApi]:
    async with front.api() as api:
        yield await api.connector("echo", {"api_key": "k" * 20}, validate=False)


@pytest.fixture(scope="module")
async def strict(connector: ConnectorApi) -> ConnectorApi:
    """A connector of a kind whose failures have the status of a success."""
    return await connector.api.connector("strict", {"api_key": "k" * 20}, validate=False)


async def held(api: Api, path: str, body: dict[str, object]) -> float:
    """The processor time of the longest callback while a call is answered."""
    longest = LongestCallback()
    with measured(longest):
        async with api.session.post(path, json=body, headers=api.headers) as response:
            await response.content.read(1)
        assert response.status in (200, 422, 502)
    return longest.seconds


async def least(attempt: Callable[[], Awaitable[float]], limit: float) -> float:
    """The least of six measurements; the first within the limit is enough, because all do the same work."""
    seconds = await attempt()
    for _ in range(5):
        if seconds > limit:
            seconds = min(seconds, await attempt())
    return seconds


@pytest.mark.parametrize(("status", "way"), [("200", "plain"), ("200", "fields"), ("422", "plain")])
@pytest.mark.parametrize("name", BODIES)
async def test_no_answer_holds_the_loop(connector: ConnectorApi, name: str, status: str, way: str):
    call = {"entity": "items", "action": "list", "params": {"cursor": f"{name}/{status}"}, **WAYS[way]}

    # The application of the first call makes its body, in the same process.
    assert await least(lambda: held(connector.api, f"{connector.path}/execute", call), LIMIT) <= LIMIT


@pytest.mark.parametrize("name", BODIES)
async def test_no_search_for_a_failure_in_an_answer_holds_the_loop(strict: ConnectorApi, name: str):
    call = {"entity": "items", "action": "list", "params": {"cursor": f"{name}/200"}}

    assert await least(lambda: held(strict.api, f"{strict.path}/execute", call), LIMIT) <= LIMIT


#: members and headers of calls that become jobs
JOBS: dict[str, tuple[dict[str, object], dict[str, str]]] = {
    "job": ({}, {"Prefer": "respond-async"}),
    "job with fields": ({"select_fields": ["id", "name"]}, {"Prefer": "respond-async"}),
    "ndjson": ({"output": {"file": "ndjson"}}, {}),
    "csv": ({"output": {"file": "csv"}}, {}),
}


@pytest.mark.parametrize("way", JOBS)
@pytest.mark.parametrize("name", BODIES)
async def test_no_job_with_such_an_answer_holds_the_loop(front: FrontEnd, connector: ConnectorApi, name: str, way: str):
    members, headers = JOBS[way]
    call = {"entity": "items", "action": "list", "params": {"cursor": f"{name}/200"}, **members}

    async def held_by_job() -> float:
        (await connector.api.post(f"{connector.path}/execute", call, headers=headers)).document(202)
        longest = LongestCallback()
        with measured(longest):
            await run_jobs(front)
        return longest.seconds

    # One statement stores a document, whatever its size.
    assert await least(held_by_job, 2 * LIMIT) <= 2 * LIMIT
