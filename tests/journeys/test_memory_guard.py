"""The memory of a front end, whatever callers send and do not end, or get and do not read: tables made from the routes.

A new route is in the tables. If it does not read its body, or does not answer, with the values here, a test names it.
"""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import asyncpg
import psutil
import pytest
from yarl import URL

from gateway.web.route import Route
from gateway.web.routes import ROUTES
from tests.harness.caller import Api
from tests.harness.clients import new_client_in
from tests.harness.console import ConsoleBrowser
from tests.harness.databases import created_database, url_of
from tests.harness.up import brought_up
from tests.harness.waiting import eventually

MIB = 1 << 20
#: MiB that a front end may grow by, whatever comes at once: 16 MiB of bodies, and what 150 connections buffer
GROWTH = 96
#: MiB by which a front end may grow while callers of one organization read nothing: its share of
#: GATEWAY_MAX_ANSWERS_BYTES, and what the answers take that are being made
UNREAD = 64 + GROWTH
#: bytes of an answer of which 100 take little
SMALL_ANSWER = 64 << 10
#: bytes that are sent of each body
SENT = MIB - 100
#: bytes of a body that may be large: of lines, and of a file
LARGE = 64 * MIB
#: the largest form of somebody who is not signed in
OPEN_FORM = 64 << 10
#: routes that are attacked at once, and connections to each of them
AT_ONCE, CONNECTIONS = 10, 15
#: seconds within which a route answers that does not wait for its body
SOON = 1.0
#: seconds within which a read answers, also the first list of all tools on a busy machine
SLOW = 60.0

FORM, JSON, LINES = "application/x-www-form-urlencoded", "application/json", "application/x-ndjson"
MULTIPART = "multipart/form-data; boundary=b"
#: routes with a body without a model, by path → media types
BODIES = {"/hooks/{hook_id}": (JSON,), "/console/batches": (MULTIPART, FORM)}
#: routes with a method of a change that read no body
WITHOUT_BODY = {
    "/api/v1/jobs/{job_id}/cancel",
    "/api/v1/schedules/{schedule_id}/run",
    "/api/v1/webhooks/{webhook_id}/test",
    "/api/v1/webhooks/{webhook_id}/rotate",
    "/api/v1/integrations/connectors/{connector_id}/check",
}
#: reads that need what no client has, and send it like another route
AS_ANOTHER = {
    "/files/{job_id}": "/api/v1/jobs/{job_id}/result",
    "/api/v1/jobs/{job_id}/events": "/api/v1/events/stream",
}
CHANGES = [route for route in ROUTES if route.method in ("POST", "PUT", "PATCH")]
READS = [route for route in ROUTES if route.method == "GET"]


@dataclass(frozen=True)
class Body:
    """A body of a route, of which a part is sent."""

    route: Route
    media: str

    @property
    def name(self) -> str:
        return f"{self.route.method} {self.route.path} {self.media.partition(';')[0]}"

    @property
    def length(self) -> int:
        if self.media in (LINES, MULTIPART) or self.route.file_media is not None:
            return LARGE
        is_of_stranger = self.media == FORM and self.route.is_open
        return LENGTHS.get(self.route.path, OPEN_FORM if is_of_stranger else MIB)


def bodies_of(route: Route) -> Iterator[Body]:
    """The bodies that a route takes."""
    media = [*BODIES.get(route.path, ()), *([JSON] if route.body is not None else ()), *route.line_media[:1]]
    media += [FORM] if route.form is not None else [route.file_media] if route.file_media is not None else []
    is_form = not media and (route.is_page or route.is_browser_step)
    return (Body(route, each) for each in (*media, *([FORM] if is_form else [])))


TABLE = [body for route in CHANGES for body in bodies_of(route)]


@dataclass(frozen=True)
class Front:
    """A gateway, and a caller of it with a token and a session of the console."""

    base_url: str
    pid: int
    database_url: str
    api: Api
    browser: ConsoleBrowser
    csrf: str
    values: dict[str, str]

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self.pid)

    def credentials(self, route: Route) -> list[str]:
        """The headers that say who sends a request: of a browser, or of a program."""
        if route.is_page or route.is_browser_step:
            cookies = self.browser.session.cookie_jar.filter_cookies(URL(self.base_url))
            return [f"Cookie: {'; '.join(f'{name}={cookie.value}' for name, cookie in cookies.items())}"]
        return [f"Authorization: {self.api.headers['Authorization']}"]

    def path(self, route: Route) -> str:
        values = self.values | VALUES.get(route.path, {})
        return re.sub(r"\{(\w+)[^}]*\}", lambda found: values.get(found[1], self.values["connector_id"]), route.path)

    def sending(self, body: Body, credentials: Sequence[str]) -> bytes:
        """The head of a request, and a part of its body."""
        route = body.route
        target = self.path(route) + QUERIES.get(route.path, "")
        lines = [f"Content-Type: {body.media}", f"Content-Length: {body.length}", *HEADERS.get(route.path, ())]
        return _head(route.method, target, *lines, *credentials) + self._beginning(body)

    def getting(self, route: Route) -> bytes:
        """A request of a read, with the longest page."""
        query = QUERIES.get(route.path, "?limit=1000" * route.has_pages)
        return _head(route.method, self.path(route) + query, *self.credentials(route))

    def _beginning(self, body: Body) -> bytes:
        size = min(SENT, body.length - 200)
        if body.media == FORM:
            return f"csrf={self.csrf}&text=".encode() + b"x" * size
        if body.media == MULTIPART:
            members = {"csrf": self.csrf, "connector": self.values["connector_id"]}
            field = "".join(
                f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
                for name, value in members.items()
            )
            file = '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
            return (field + file).encode() + b"x" * size
        return b'{"a": "' + b"x" * size


#: queries and headers without which a route reads no body, by path
QUERIES = {
    "/api/v1/integrations/connectors/{connector_id}/upload/{entity}": "?issueIdOrKey=ACME-7&filename=a",
    "/api/v1/integrations/connectors/{connector_id}/download/{entity}": "?attachment_id=2",
    "/api/v1/events": "?after=0&limit=1000",
    "/api/v1/events/stream": "?after=0",
    "/api/v1/skills/docs": "?id=jira",
}
HEADERS = {
    "/api/v1/integrations/connectors/{connector_id}/uploads/{upload_id}": ("Upload-Offset: 0", "Upload-Complete: ?1")
}
#: maximum bytes of a body that is smaller than others, by path
LENGTHS = {"/scim/v2/Users": 64 << 10, "/scim/v2/Users/{user_id}": 64 << 10}
#: values of variables of a path that other paths have with another meaning
VALUES: dict[str, dict[str, str]] = {
    "/scim/v2/ResourceTypes/{name}": {"name": "User"},
    "/scim/v2/Schemas/{schema}": {"schema": "urn:ietf:params:scim:schemas:core:2.0:User"},
}


def is_long(route: Route) -> bool:
    """Whether an answer may be long: a page of a list, a stream, or something else than the JSON of one item."""
    is_list = (route.is_page and "{" not in route.path) or route.has_pages or route.is_array or 200 in route.media
    return is_list and not route.is_browser_step


def _head(method: str, target: str, *lines: str) -> bytes:
    return "\r\n".join([f"{method} {target} HTTP/1.1", "Host: a", *lines, "", ""]).encode()


@pytest.fixture(scope="module")
async def front(
    postgres_url: str, redis_url: str, migrated_database: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Front]:
    folder: Path = tmp_path_factory.mktemp("guarded")
    async with created_database(postgres_url, migrated_database) as name:
        environment = {
            **os.environ,
            "GATEWAY_DATABASE_URL": url_of(postgres_url, name),
            "GATEWAY_REDIS_URL": redis_url,
            "GATEWAY_LOG_LEVEL": "error",
        }
        async with (
            brought_up(folder, environment, "--sandbox") as ready,
            Api.of(
                ready["base_url"], (client := await new_client_in(url_of(postgres_url, name))).id, client.secret
            ) as api,
            aiohttp.ClientSession(ready["base_url"], cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
        ):
            browser = ConsoleBrowser(session)
            form = {"client_id": client.id, "client_secret": client.secret}
            assert (await browser.send("/console/sign-in", **form)).status == 303
            yield Front(
                ready["base_url"],
                ready["pids"]["gateway"][0],
                url_of(postgres_url, name),
                api,
                browser,
                await browser.csrf(),
                await _values(api),
            )


async def _values(api: Api) -> dict[str, str]:
    """Values of the variables of paths with which routes read their bodies and answer."""
    tracker = await api.connector(
        "jira", {"username": "a@example.com", "password": "t"}, environment={"subdomain": "acme"}
    )
    drive = await api.connector("google-drive", {"access_token": "token", "refresh_token": "refresh"})
    link = {"workspace_name": "w", "connector_types": ["support-desk"]}
    page = (await api.post("/api/v1/connect/sessions", link)).document(201)["url"]
    hook = (
        await api.post(f"{(await api.connector('Team-Chat', {'access_token': 't'}, validate=False)).path}/hook", {})
    ).document()
    begun = await api.call(
        "POST",
        f"{drive.path}/upload/files_upload",
        params={"filename": "film.bin", "file_mime_type": "video/mp4"},
        headers={"Upload-Complete": "?0", "Upload-Length": str(LARGE)},
    )
    desk = await api.connector()
    download = await desk.submit("attachments", "download", {"attachment_id": 2})
    await api.ended_job(download)
    VALUES["/api/v1/integrations/connectors/{connector_id}/uploads/{upload_id}"] = {"connector_id": drive.record["id"]}
    VALUES["/api/v1/integrations/connectors/{connector_id}/download/{entity}"] = {
        "connector_id": desk.record["id"], "entity": "attachments",
    }  # fmt: skip
    webhook = (await api.post("/api/v1/webhooks", {"url": "https://hooks.example.com/a", "types": ["job.*"]})).document(
        201
    )
    return {
        "connector_id": tracker.record["id"],
        "webhook_id": webhook["id"],
        "job_id": download["id"],
        "entity": "issue_attachments",
        "upload_id": begun.headers["Location"].rpartition("/")[2],
        "hook_id": hook["url"].rpartition("/")[2],
        "token": page.rpartition("/")[2],
        "kind": "jira",
        "connector_type": "jira",
        "name": "a",
        "version": "1",
        "event_id": "1",
    }


async def opened(front: Front, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which as much of a request was sent as the gateway reads; it is aborted by the caller."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(front.base_url.rpartition(":")[2]))
    writer.write(request)
    with suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(2):
            await writer.drain()
    return reader, writer


async def grown(front: Front, requests: Iterable[bytes]) -> float:
    """MiB by which the front end grows while the requests wait."""
    before = peak = front.process.memory_info().rss
    connections = await asyncio.gather(*(opened(front, request) for request in requests))
    for _ in range(10):
        await asyncio.sleep(0.1)
        peak = max(peak, front.process.memory_info().rss)
    for _, writer in connections:
        writer.transport.abort()
    await eventually(lambda: _is_served(front))  # a busy machine may shed load in the meantime
    return (peak - before) / MIB


async def _is_served(front: Front) -> bool:
    return (await front.api.get("/api/v1/jobs")).status == 200


async def answered(front: Front, request: bytes, seconds: float = SOON) -> int | None:
    """The status of the answer to a request or a part of it; None if the route waits for the rest."""
    reader, writer = await opened(front, request)
    try:
        async with asyncio.timeout(seconds):
            return int((await reader.readuntil(b"\r\n")).split(b" ")[1])
    except TimeoutError:
        return None
    finally:
        writer.transport.abort()


def parts(table: Sequence[Body]) -> Iterator[Sequence[Body]]:
    """The table in parts that one organization's share has room for once."""
    return (table[start : start + AT_ONCE] for start in range(0, len(table), AT_ONCE))


async def test_every_route_that_changes_something_reads_its_body_in_these_tables(front: Front):
    """Add to VALUES, QUERIES or HEADERS what makes a route read its body; to BODIES or WITHOUT_BODY what it reads."""
    read = {body.route.path for body in TABLE}
    early = {}
    for bodies in parts(TABLE):
        sent = (front.sending(body, front.credentials(body.route)) for body in bodies)
        statuses = await asyncio.gather(*(answered(front, request) for request in sent))
        early |= {body.name: status for body, status in zip(bodies, statuses, strict=True) if status is not None}

    assert early == {}
    assert {route.path for route in CHANGES} - read == WITHOUT_BODY


@pytest.mark.parametrize("who", ["an organization", "a stranger"])
async def test_bodies_that_do_not_end_take_bounded_memory_and_give_it_back(front: Front, who: str):
    """Connections to all routes; the share is half of GATEWAY_MAX_BODIES_BYTES, 16 MiB."""
    first, large = front.process.memory_info().rss, {}
    for bodies in parts(TABLE):
        sent = [
            front.sending(each, front.credentials(each.route) if who == "an organization" else ()) for each in bodies
        ]
        if (size := await grown(front, sent * CONNECTIONS)) > GROWTH:
            large[" | ".join(each.name for each in bodies)] = size

    assert large == {}
    assert (front.process.memory_info().rss - first) / MIB <= 2 * GROWTH


async def test_every_long_answer_is_in_this_table(front: Front):
    """Add to VALUES or QUERIES what makes a route answer; to AS_ANOTHER the route that sends its answer like it."""
    refused = {}
    for route in (each for each in READS if is_long(each) and each.path not in AS_ANOTHER):
        if (status := await answered(front, front.getting(route), SLOW)) not in (200, 302, 303):
            refused[route.path] = status

    assert refused == {}


async def test_answers_that_are_not_read_take_bounded_memory_and_give_it_back(front: Front):
    """Every read with a large answer or a stream, with 100 callers that read nothing, and rows as large as can be."""
    await _fill(front)
    requests = {route.path: front.getting(route) for route in READS}
    sizes = {path: await _length(front, request) for path, request in requests.items()}
    large = {path: request for path, request in requests.items() if sizes[path] > SMALL_ANSWER}
    grew, first = {}, front.process.memory_info().rss
    for path, request in large.items():
        grew[path] = await grown(front, [request] * 100)

    assert {"/api/v1/jobs", "/api/v1/events", "/api/v1/events/stream", "/api/v1/tools"} <= set(grew)
    assert {path: size for path, size in grew.items() if size > UNREAD} == {}
    assert (front.process.memory_info().rss - first) / MIB <= 2 * UNREAD


async def _length(front: Front, request: bytes) -> float:
    """The length of an answer; without end for a stream, and 0 for a refusal."""
    reader, writer = await opened(front, request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    writer.transport.abort()
    if head.split(b" ")[1] != b"200":
        return 0
    return float(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or "inf")


async def _fill(front: Front) -> None:
    """Rows that are as large as callers and applications can make them."""
    connector_id = front.values["connector_id"]
    error = json.dumps({"code": "upstream_error", "title": "t", "detail": "x" * (60 << 10)})
    labels = json.dumps({"a" * 1000: "x" * 2000, "b": "x" * 900})
    data = json.dumps({"job_id": connector_id, "labels": json.loads(labels)})
    owner = await asyncpg.connect(front.database_url)
    organization = await owner.fetchval("SELECT organization_id FROM connectors WHERE id = $1", connector_id)
    await owner.execute(
        "INSERT INTO jobs (id, organization_id, connector_id, task, effect, status, labels, error, params) "
        "SELECT gen_random_uuid(), $1, $2, 'operation', 'read', 'failed', $3::jsonb, $4, '{}' "
        "FROM generate_series(1, 1000)", organization, connector_id, labels, error,
    )  # fmt: skip
    await owner.execute(
        "INSERT INTO events (organization_id, type, connector_id, data) "
        "SELECT $1, 'job.failed', $2, $3 FROM generate_series(1, 1000)", organization, connector_id, data,
    )  # fmt: skip
    await owner.close()
