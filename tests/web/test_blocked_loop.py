"""No request with a body or a query at the documented limits holds the event loop: one table, made from the routes."""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from pydantic import BaseModel

from gateway.web.route import Route
from gateway.web.routes import ROUTES
from tests.harness.blocked_loop import LIMIT, LongestCallback, measured
from tests.harness.caller import Answer, Api, ConnectorApi
from tests.harness.in_process import FrontEnd, front_end

#: other tests beside them would be measured too
pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("without_collections")]

#: GATEWAY_MAX_BODY_BYTES
BODY = 1 << 20
#: characters of a query; a longer request line is refused
QUERY = 6000


def values(size: int) -> Iterator[tuple[str, bytes]]:
    """JSON values of that size."""
    for name, item in {"numbers": b"1", "arrays": b"[]", "objects": b'{"a":1}', "texts": b'"ab"'}.items():
        yield name, b"[" + b",".join([item] * (size // (len(item) + 1))) + b"]"
    yield "allowed arrays", b"[" + b",".join([b"[]"] * 99_000) + b"]"
    yield "members", b"{" + b",".join(b'"k%d":1' % number for number in range(size // 11)) + b"}"
    yield "a number", b"9" * size
    yield "a fraction", b"0." + b"9" * (size - 2)
    yield "fractions", b"[" + b",".join([b"2.2250738585072011e-308"] * (size // 24)) + b"]"
    yield "beyond every number", b"[" + b",".join([b"1e999999"] * (size // 9)) + b"]"
    yield "a text", b'"' + b"x" * size + b'"'


MESSAGE = b'{"jsonrpc":"2.0","id":1,"method":%s}'
ACCEPT = {"Accept": "application/json, text/event-stream"}
SHAPES = [name for name, _ in values(100)]


@dataclass(frozen=True)
class Request:
    """A request to a route."""

    name: str
    method: str
    path: str
    body: bytes | None = None
    media: str = "application/json"


def requests_of(route: Route, connector_id: str, shape: str, value: bytes) -> Iterator[Request]:
    """Requests with the value in each member of the body and of the query, and in place of the whole body."""
    path = re.sub(r"\{[^}]*\}", str(uuid4()), route.path.replace("{connector_id}", connector_id))
    if isinstance(route.body, type):
        for name in _members(route.body):
            others = {key: example for key, example in _example(route.body).items() if key != name}
            body = json.dumps(others).encode()[:-1] + (b", " if others else b"") + b'"%s": ' % name.encode() + value
            yield Request(f"{route.method} {route.path} {name}", route.method, path, body[: BODY - 1] + b"}")
        yield Request(f"{route.method} {route.path}", route.method, path, value)
    if route.form is not None:
        form = b"&".join([b"a=1"] * (BODY // 4))
        yield Request(f"{route.method} {route.path}", route.method, path, form, "application/x-www-form-urlencoded")
    if route.line_media:
        yield Request(f"{route.method} {route.path} lines", route.method, path, value + b"\n", route.line_media[0])
    if route.line_media and shape == "a text":
        for line in (b"\n", b"{}\n", b"[]\n", b'{"entity":"tickets","action":"list"}\n'):
            lines = line * (BODY // len(line))
            yield Request(f"{route.method} {route.path} {line!r}", route.method, path, lines, route.line_media[0])
    if route.query is not None and shape == "a text":
        for name in _members(route.query):
            for text in (",".join(["ab"] * (QUERY // 3)), "*" * QUERY, "[" * QUERY, "9" * QUERY):
                yield Request(
                    f"{route.method} {route.path}?{name}", route.method, f"{path}?{name}={quote(text)}"[:QUERY]
                )


def _members(model: Any) -> list[str]:
    if issubclass(model, BaseModel):
        return [field.alias or name for name, field in model.model_fields.items()]
    return list(model.__struct_fields__)


def _example(model: Any) -> Mapping[str, Any]:
    examples: Mapping[str, Mapping[str, Any]] = getattr(model, "EXAMPLES", {})
    return next(iter(examples.values()), {})


@pytest.fixture(scope="module")
async def front(tmp_path_factory: pytest.TempPathFactory, database_url: str, redis_url: str) -> AsyncIterator[FrontEnd]:
    folder: Path = tmp_path_factory.mktemp("front-end")
    async with front_end(folder, database_url, redis_url, max_load=1) as opened:
        yield opened


@pytest.mark.parametrize("shape", SHAPES)
async def test_no_request_at_the_limits_holds_the_loop(api: Api, support_desk: ConnectorApi, shape: str):
    """A new route is in the table by its models."""
    value = dict(values(BODY - 1000))[shape]
    slow = {}
    for route in ROUTES:
        if route.file_media is not None:
            continue
        for request in requests_of(route, support_desk.record["id"], shape, value):
            seconds = await shortest(api, request)
            if seconds > LIMIT:
                slow[request.name] = round(seconds, 3)

    assert slow == {}


@pytest.mark.parametrize("shape", SHAPES)
async def test_no_message_of_an_agent_at_the_limits_holds_the_loop(api: Api, support_desk: ConnectorApi, shape: str):
    """A new tool is in the table by its schema."""
    value = dict(values(BODY - 1000))[shape]
    tools = json.loads((await message(api, b'"tools/list","params":{}')).body)["result"]["tools"]
    slow = {}
    for name, body in messages_of(tools, value):
        request = Request(name, "POST", "/mcp", body)
        seconds = await shortest(api, request, **ACCEPT)
        if seconds > 2 * LIMIT:  # a message is decoded, and its arguments are checked by the tool's schema
            slow[name] = round(seconds, 3)

    assert slow == {}


def messages_of(tools: Sequence[Mapping[str, Any]], value: bytes) -> Iterator[tuple[str, bytes]]:
    """Calls of every tool with the value as each of its arguments, and other messages with it."""
    for tool in tools:
        for argument in tool["inputSchema"]["properties"]:
            others = {"operation": "support-desk.tickets.list"} if argument != "operation" else {}
            arguments = json.dumps(others).encode()[:-1] + (b"," if others else b"") + b'"%s":' % argument.encode()
            named = b'"name":"%s","arguments":%s' % (tool["name"].encode(), arguments + value + b"}")
            yield f"{tool['name']} {argument}", MESSAGE % (b'"tools/call","params":{%s}' % named)
    for method in (b"tools/call", b"tools/list", b"resources/read", b"completion/complete", b"events/subscribe", b"x"):
        yield method.decode(), MESSAGE % (b'"%s","params":%s' % (method, value))


async def message(api: Api, method: bytes) -> Answer:
    return await api.call("POST", "/mcp", data=MESSAGE % method, headers={**ACCEPT, "Content-Type": "application/json"})


async def shortest(api: Api, request: Request, **headers: str) -> float:
    """The shortest of some tries: the kernel's work for new pages of memory is not the handler's."""
    seconds = await held(api, request, **headers)
    for _ in range(7):
        seconds = min(seconds, await held(api, request, **headers)) if seconds > LIMIT else seconds
    return seconds


async def held(api: Api, request: Request, **more: str) -> float:
    """The processor time of the longest callback while a request is answered."""
    longest = LongestCallback()
    headers = {**api.headers, "Content-Type": request.media, **more}
    with measured(longest):
        async with api.session.request(
            request.method,
            request.path,
            data=None if request.body is None else BytesIO(request.body),
            headers=headers if request.body is not None else api.headers,
            allow_redirects=False,
        ) as response:
            await response.content.read(1)
        assert response.status != 500, request.name
    return longest.seconds
