"""An application that echoes every credential in everything it sends: none is seen again anywhere but in records."""

import asyncio
import json
import os
from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote
from uuid import uuid4

import aiohttp
import pytest
import yaml
from aiohttp import web

from tests.agents.mcp.conftest import Raw
from tests.harness.caller import Api, ConnectorApi
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.databases import rows_as_text
from tests.harness.hostile_kinds import change_file, write_kind
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.serving import served
from tests.harness.waiting import eventually
from workers.main import Worker

#: credentials in a header, in a Basic header, in a query, and those of an OAuth app
KEYS = {name: f"canary-{name}-9f8e7d6c5b4a3210" for name in ("token", "basic", "query", "access", "refresh", "app")}
PASSWORD = "canary-password-1a2b3c4d5e"
CREDENTIALS = {
    "api_key": {"api_key": KEYS["token"]},
    "basic": {"user": "ada", "word": KEYS["basic"]},
    "query": {"key": KEYS["query"]},
    "oauth": {"refresh_token": KEYS["refresh"], "client_id": "app", "client_secret": KEYS["app"]},
}
#: what the application does with a request, by the id of the item
ANSWERS = ("unreadable", "refused", "unauthorized", "failed", "text", "moved", "missing", "limited")
#: those that a batch sends one after the other
_AT_ONCE = ("refused", "unreadable", "text", "moved", "missing")
FILE_KEY = "canary-file-5f4e3d2c1b0a"
#: the beginning of each secret, as it is and in base64
FORMS = (
    "canary",
    *(b64encode(b"x" * offset + b"canary").decode()[2:-2] for offset in range(3)),
    b64encode(f"ada:{KEYS['basic']}".encode()).decode().rstrip("="),
)


def _method(**members: Any) -> dict[str, Any]:
    names = members.pop("fields")
    fields = {name: {"description": name, "secret": name not in ("user", "client_id")} for name in names}
    return {"title": "Way", "credentials": fields, **members}


def write_echo_kind(root: Path) -> None:
    """A kind with each way to authenticate, a download whose address is a key, and a search."""
    folder = write_kind(root, "echo")
    methods = {
        "api_key": _method(scheme="bearer", token="api_key", fields=("api_key",)),
        "basic": _method(scheme="basic", username="{user}", password="{word}", fields=("user", "word")),
        "query": _method(scheme="api_key", query={"key": "{key}"}, fields=("key",)),
        "oauth": _method(
            scheme="bearer", token="access_token", oauth=True,
            fields=("access_token", "refresh_token", "client_id", "client_secret"),
        ),
    }  # fmt: skip
    for method in methods.values():
        for name, field in method["credentials"].items():
            field["required"] = name not in ("access_token", "client_id", "client_secret")
    urls = {name: f"https://api.echo.example.com/{name}" for name in ("authorization_url", "token_url")}
    change_file(folder / "connector.yaml", {"authentication": methods, "oauth": {**urls, "scopes": ["default"]}})
    items = yaml.safe_load((folder / "items.yaml").read_text())
    create = items["actions"]["create"]
    create["params"]["password"] = {"type": "string", "description": "the password of the item"}
    items["actions"]["download"] = {
        "request": "GET /files/{item_id}",
        "effect": "read",
        "description": "The file of an item.",
        "download": {"url": "url"},
        "params": items["actions"]["get"]["params"],
        "required": ["item_id"],
        "example": {"item_id": "item-1"},
    }
    (folder / "items.yaml").write_text(yaml.safe_dump(items, sort_keys=False))


def _echo(request: web.Request, body: str) -> str:
    """Everything secret of a request, in one text."""
    proof = request.headers.get("Authorization", "")
    plain = [request.query.get("key", ""), proof.partition(" ")[2], proof, quote(proof), body]
    if proof.startswith("Basic "):
        plain.append(aiohttp.BasicAuth.decode(proof).password)
    return " ".join(each for each in plain if each)


async def answer(request: web.Request) -> web.StreamResponse:
    body = (await request.text()).replace("\n", " ")
    echo = _echo(request, body)
    headers = dict.fromkeys(("X-Request-Id", "X-Other", "Retry-After", "Date"), echo[:2000])
    headers |= {"Link": f'<https://api.echo.example.com/items?cursor={quote(echo)}>; rel="next"', "ETag": f'"{echo}"'}
    headers |= {"Content-Disposition": f'attachment; filename="{echo.replace(chr(34), "")}.txt"'}
    name = request.path.rpartition("/")[2]
    document = {"error": {"code": echo, "message": f"{echo} is wrong", "field": echo}, "error_description": echo}
    match name:
        case "unreadable":
            return web.Response(text=f"<html>{echo}", headers=headers)
        case "refused" | "token_url":
            return web.json_response(document, status=422, headers=headers, reason=echo[:200])
        case "unauthorized":
            return web.json_response(document, status=401, headers=headers, reason=echo[:200])
        case "failed":
            return web.json_response({"errors": [{"message": echo}]}, status=500, headers=headers)
        case "text":
            return web.Response(text=f"no such {echo[:300]}", status=400, headers=headers)
        case "missing":
            return web.json_response({"detail": echo}, status=404, headers=headers)
        case "limited":
            return web.json_response(document, status=429, headers={**headers, "Retry-After": "1000"})
        case "moved":
            return web.Response(status=302, headers={**headers, "Location": f"/{quote(echo)}"})
        case "items" if request.method == "POST":
            return web.json_response(document, status=422, headers=headers)
        case "items":
            more = {"next_cursor": f"https://api.echo.example.com/items?key={quote(echo)}&cursor=2"}
            return web.json_response({"items": [{"id": "1", "name": echo}], "paging": more}, headers=headers)
        case _ if "/files/" in request.path:
            origin = str(request.url.origin())
            return web.json_response({"url": f"{origin}/v1/attachments/token/{FILE_KEY}/{name}"})
        case "file-moved":
            return web.Response(status=302, headers={**headers, "Location": f"/v1/attachments/{FILE_KEY}/file"})
        case "file":
            return web.Response(body=b"0123456789", headers=headers)
    return web.json_response(document, status=403, headers=headers)


@dataclass(frozen=True)
class World:
    front: FrontEnd
    api: Api
    client: tuple[str, str]

    async def connector(self, method: str) -> ConnectorApi:
        """A new connector that authenticates by a method."""
        return await self.api.connector("echo", CREDENTIALS[method], name=f"Echo {uuid4()}", validate=False)


@pytest.fixture(scope="module")
async def world(tmp_path_factory, database_url: str, redis_url: str) -> AsyncIterator[World]:
    root = tmp_path_factory.mktemp("specs")
    write_echo_kind(root)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    # Without the application's own access log, which other tests' log levels would put beside the gateway's.
    async with served(application) as url:
        with patch.dict(os.environ, {"GATEWAY_UPSTREAM_ECHO": url}):
            async with front_end(tmp_path_factory.mktemp("front"), database_url, redis_url, specs=(root,)) as front:
                assert not front.services.catalog.refused
                organization_id, stopping = await front.organization(), asyncio.Event()
                async with front.api(organization_id) as api, asyncio.TaskGroup() as tasks:
                    tasks.create_task(Worker(front.services).until(stopping))
                    yield World(front, api, await front.client(organization_id))
                    stopping.set()


@pytest.fixture
async def browser(world: World) -> AsyncIterator[ConsoleBrowser]:
    async with signed_in(world.front, *world.client) as opened:
        yield opened


def secrets_in(text: str | bytes) -> list[str]:
    """The places with a credential in any form."""
    found = text.decode(errors="replace") if isinstance(text, bytes) else text
    return [found[max(0, found.find(form) - 80) :][:200] for form in FORMS if form in found]


@pytest.mark.parametrize("method", CREDENTIALS)
@pytest.mark.parametrize("behaviour", ANSWERS)
async def test_no_error_shows_a_credential(world: World, method: str, behaviour: str):
    connector = await world.connector(method)

    refused = await connector.send("items", "create", {"name": "x", "password": PASSWORD})
    direct = await connector.send("items", "get", {"item_id": behaviour})

    for answered in (refused, direct):
        assert answered.status >= 400
        assert b"***" in answered.body
        assert secrets_in(answered.body) == []


@pytest.mark.parametrize("method", [name for name in CREDENTIALS if name != "oauth"])
async def test_links_to_the_next_page_show_no_credential_and_records_are_as_they_are(world: World, method: str):
    page = await (await world.connector(method)).execute("items", "list")

    assert secrets_in(json.dumps([page["next"], page["connector_metadata"]])) == []
    assert "***" in page["next"]["cursor"]
    assert secrets_in(json.dumps(page["result"])) != []


@pytest.mark.parametrize("method", [name for name in CREDENTIALS if name != "oauth"])
@pytest.mark.parametrize("file", ["file", "file-moved"])
async def test_no_header_of_a_file_shows_a_credential(world: World, method: str, file: str):
    connector = await world.connector(method)

    sent = await connector.send("items", "download", {"item_id": file})

    assert (sent.status, sent.body) == (200, b"0123456789")
    assert secrets_in(str(sent.headers)) == []


async def test_nothing_that_is_stored_or_shown_later_has_a_credential(world: World, browser: ConsoleBrowser, caplog):
    async with aiohttp.ClientSession(headers=world.api.headers) as session:
        mcp = Raw(session, f"{world.front.base_url}/mcp")
        for method in CREDENTIALS:
            connector = await world.connector(method)
            operations = [{"entity": "items", "action": "get", "params": {"item_id": each}} for each in _AT_ONCE]
            batch = (await world.api.post(f"{connector.path}/batch", {"operations": operations})).document(202)["job"]
            connectors = [await world.connector(method) for _ in range(3)]
            jobs = [
                batch,
                await connectors[0].submit("items", "get", {"item_id": "unreadable"}),
                await connectors[1].submit("items", "get", {"item_id": "unauthorized"}),
                await connectors[2].submit("items", "create", {"name": "x", "password": PASSWORD}),
            ]
            shown = [await world.api.ended_job(job) for job in jobs]
            answers = [await world.api.get(f"/api/v1/jobs/{job['id']}/result") for job in jobs]
            answers += [await browser.get(f"/console/jobs/{job['id']}") for job in jobs]
            answers += [await browser.get(f"/console/connectors/{each.record['id']}") for each in connectors]
            answers.append(await world.api.post(f"{connector.path}/check"))
            answers.append(await connector.send("items", "download", {"item_id": "file-moved"}))
            arguments = {"connector": connector.record["name"], "entity": "items", "action": "get"}
            call = {"name": "execute", "arguments": {**arguments, "params": {"item_id": "refused"}}}

            assert secrets_in(json.dumps(shown)) == []
            assert [place for each in answers for place in secrets_in(each.body)] == []
            assert secrets_in(repr(await mcp("tools/call", call))) == []
    # The request log is written in batches.
    await eventually(lambda: _is_logged(world))
    for path in ("requests", "events", "audit", "jobs", "integrations/connectors"):
        assert secrets_in((await world.api.get(f"/api/v1/{path}?limit=1000")).body) == [], path
    assert secrets_in(caplog.text) == []
    rows = await rows_as_text(world.front.services.database)
    assert [(table, each) for table, row in rows for each in secrets_in(row)] == []


async def _is_logged(world: World) -> bool:
    requests = (await world.api.get("/api/v1/requests?limit=1000")).document()["data"]
    return {"/v1/items/refused", "/…"} <= {each["path"] for each in requests}
