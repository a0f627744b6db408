"""Misbehaving applications and private addresses: typed errors, bounded memory, and no effect on other requests."""

import asyncio
import gzip
import json
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import aiohttp
import psutil
import pytest

from tests.harness.caller import Answer, Api, ConnectorApi
from tests.harness.databases import created_database, url_of
from tests.harness.up import brought_up
from tests.harness.waiting import eventually

MIB = 1 << 20
JSON = "Content-Type: application/json"
#: MiB that a front end may grow by, whatever comes at once
GROWTH = 64
BYTES = b"0123456789"
SECRETS = {"token": "canary-secret"}
_CONNECTOR = """
kind: hostile
title: Hostile
description: An application that cannot be trusted.
definition_id: 00000000-0000-4000-8000-000000000000
server: https://api.hostile.example.com/v1
hosts: [api.hostile.example.com]
file_hosts: ["*"]
authentication:
  token:
    title: Token
    scheme: bearer
    token: token
    credentials:
      token: {description: token, required: true, secret: true}
rate_limit: {requests: 1000, seconds: 1}
health_check: things.list
"""
_THINGS = """
description: Things.
actions:
  list:
    request: GET /things
    effect: read
    description: The check of the credentials.
    records: $
  get:
    request: GET /things/{case}
    effect: read
    description: Whatever the application makes of it.
    record: $
    timeout: 2
    params:
      case: {type: string, description: which answer}
    required: [case]
    example: {case: plain}
  read_slowly:
    request: GET /things/{case}
    effect: read
    description: The same, with all the time that a large answer takes on a busy machine.
    record: $
    timeout: 30
    params:
      case: {type: string, description: which answer}
    required: [case]
    example: {case: plain}
  download:
    request: GET /records/{case}
    effect: read
    description: Whatever the application gives for a file.
    download: {url: url, size: size}
    timeout: 2
    params:
      case: {type: string, description: which answer}
      range_header: {type: string, in: header, as: Range, description: a part of the file}
    required: [case]
    example: {case: plain}
"""
#: what is said to a request, piece by piece; then the connection closes
Script = Callable[[], AsyncIterator[bytes]]


def head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def framed(body: bytes, *lines: str, status: str = "200 OK", length: int | None = None) -> bytes:
    return head(f"Content-Length: {len(body) if length is None else length}", *lines, status=status) + body


def says(*pieces: bytes) -> Script:
    async def script() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return script


@cache
def packed(mebibytes: int, times: int) -> bytes:
    """Zeros, packed by gzip so many times."""
    body = bytes(mebibytes * MIB)
    for _ in range(times):
        body = gzip.compress(body)
    return body


def bomb(mebibytes: int, coding: str) -> Script:
    async def script() -> AsyncIterator[bytes]:
        body = await asyncio.to_thread(packed, mebibytes, coding.count("gzip"))
        yield framed(body, JSON, f"Content-Encoding: {coding}")

    return script


def endlessly(beginning: bytes, piece: bytes, pause: float = 0) -> Script:
    async def script() -> AsyncIterator[bytes]:
        yield beginning
        while True:
            yield piece
            await asyncio.sleep(pause)

    return script


def silence(beginning: bytes = b"") -> Script:
    async def script() -> AsyncIterator[bytes]:
        yield beginning
        await asyncio.sleep(3600)

    return script


@dataclass
class Hostile:
    """The application: what it says to whom, and the records of its files."""

    port: int = 0
    records: dict[str, object] = field(default_factory=dict)
    scripts: dict[str, Script] = field(default_factory=dict)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
            _, kind, case = line.rsplit("/", 2)
            script = says(framed(json.dumps(self.records[case]).encode())) if kind == "records" else self.scripts[case]
            async for piece in script():
                writer.write(piece)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


@dataclass
class Canary:
    """A server within that nobody may ever reach."""

    port: int = 0
    arrivals: int = 0

    async def sing(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.arrivals += 1
        writer.close()


@pytest.fixture(scope="module")
async def hostile() -> AsyncIterator[Hostile]:
    application = Hostile()
    talks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        task.add_done_callback(talks.discard)
        await application.talk(reader, writer)

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    application.port = server.sockets[0].getsockname()[1]
    yield application
    server.close()
    for task in list(talks):
        task.cancel()
    await asyncio.gather(*talks)


@pytest.fixture(scope="module")
async def canary() -> AsyncIterator[Canary]:
    canary = Canary()
    async with await asyncio.start_server(canary.sing, "127.0.0.1", 0) as server:
        canary.port = server.sockets[0].getsockname()[1]
        yield canary


@dataclass(frozen=True)
class Front:
    """A gateway whose one application is hostile."""

    base_url: str
    client_id: str
    client_secret: str
    pid: int
    database_url: str


@pytest.fixture(scope="module")
async def front(
    hostile: Hostile,
    postgres_url: str,
    redis_url: str,
    migrated_database: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Front]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    (folder / "kind").mkdir()
    (folder / "kind" / "connector.yaml").write_text(_CONNECTOR)
    (folder / "kind" / "things.yaml").write_text(_THINGS)
    async with created_database(postgres_url, migrated_database) as name:
        environment = {
            **os.environ,
            "GATEWAY_DATABASE_URL": url_of(postgres_url, name),
            "GATEWAY_REDIS_URL": redis_url,
            "GATEWAY_SPECS": str(folder / "kind"),
            "GATEWAY_UPSTREAM_HOSTILE": f"http://127.0.0.1:{hostile.port}",
            "GATEWAY_LOG_LEVEL": "error",
        }
        async with brought_up(folder, environment) as ready:
            pid = ready["pids"]["gateway"][0]
            yield Front(ready["base_url"], ready["client_id"], ready["client_secret"], pid, url_of(postgres_url, name))


@pytest.fixture
async def caller(front: Front) -> AsyncIterator[Api]:
    async with Api.of(front.base_url, front.client_id, front.client_secret) as opened:
        yield opened


@pytest.fixture
async def connector(caller: Api) -> ConnectorApi:
    return await caller.connector("hostile", SECRETS, validate=False)


INVALID = "upstream_invalid_response"
BAD_ANSWERS: dict[str, tuple[Script, int, str]] = {
    "a gzip bomb": (bomb(256, "gzip"), 502, "upstream_too_large"),
    "a bomb within a bomb": (bomb(256, "gzip, gzip"), 502, INVALID),
    "JSON of 100 MB": (says(framed(b'{"a": "' + b"x" * 100_000_000 + b'"}', JSON)), 502, "upstream_too_large"),
    "JSON without an end": (endlessly(head(JSON) + b"[", b"1," * MIB), 502, "upstream_too_large"),
    "JSON a hundred thousand deep": (says(framed(b"[" * 100_000 + b"]" * 100_000)), 502, INVALID),
    "objects a hundred thousand deep": (
        says(framed(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)),
        502,
        INVALID,
    ),
    "headers of 1 MB": (says(framed(b"{}", *[f"X-{n}: {'y' * 1000}" for n in range(1000)])), 502, INVALID),
    "one header of 1 MB": (says(framed(b"{}", f"X: {'y' * MIB}")), 502, INVALID),
    "no UTF-8": (says(framed(b'{"a": "\xff\xfe"}', JSON)), 502, INVALID),
    "HTML": (says(framed(b"<html>log in</html>", "Content-Type: text/html")), 502, INVALID),
    "no JSON": (says(framed(b"{'a': 1}", JSON)), 502, INVALID),
    "NaN": (says(framed(b'{"a": NaN}', JSON)), 502, INVALID),
    "no HTTP": (says(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), 502, INVALID),
    "a redirect": (says(framed(b"", "Location: http://169.254.169.254/", status="302 Found")), 502, INVALID),
    "half an answer": (says(framed(b'{"a": 1', length=20)), 502, "upstream_truncated"),
    "chunks without an end": (says(head("Transfer-Encoding: chunked") + b"2\r\n{}\r\n"), 502, "upstream_truncated"),
    "no answer": (says(b""), 502, "upstream_error"),
    "silence": (silence(), 504, "upstream_timeout"),
    "silence after the head": (silence(head("Content-Length: 9")), 504, "upstream_timeout"),
    "a byte now and then": (endlessly(head("Content-Length: 99999"), b" ", pause=0.1), 504, "upstream_timeout"),
    "headers without an end": (endlessly(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), 502, INVALID),
    "to be continued": (endlessly(b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.01), 502, INVALID),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_ANSWERS)
async def test_a_bad_answer_is_a_typed_error(hostile: Hostile, connector: ConnectorApi, case: str):
    script, status, code = BAD_ANSWERS[case]
    hostile.scripts["bad"] = script

    answer = await connector.send("things", "get" if code == "upstream_timeout" else "read_slowly", {"case": "bad"})

    assert (answer.status, answer.json()["code"]) == (status, code)
    assert ("upstream" in answer.json()) is (status == 502)
    assert b"canary-secret" not in answer.body


async def test_bad_answers_grow_no_memory_and_harm_no_other_request(
    hostile: Hostile, connector: ConnectorApi, front: Front
):
    hostile.scripts |= {str(number): script for number, (script, _, _) in enumerate(BAD_ANSWERS.values())}
    hostile.scripts["good"] = says(framed(b'{"ok": true}', JSON))
    process, good = psutil.Process(front.pid), [await connector.send("things", "get", {"case": "good"})]
    before = peak = process.memory_info().rss

    bad = asyncio.gather(
        *(connector.send("things", "get", {"case": str(number)}) for number in range(len(BAD_ANSWERS)))
    )
    while not bad.done():
        good.append(await connector.send("things", "get", {"case": "good"}))
        peak = max(peak, process.memory_info().rss)
    answers = await bad

    assert {answer.status for answer in answers} <= {502, 504}
    assert {answer.status for answer in good} == {200}
    assert (peak - before) / MIB <= GROWTH


async def test_sixty_bombs_at_once_are_dropped_before_they_have_gone_off(
    hostile: Hostile, connector: ConnectorApi, front: Front
):
    hostile.scripts["bomb"], _, _ = BAD_ANSWERS["a gzip bomb"]
    process, _ = psutil.Process(front.pid), await connector.send("things", "get", {"case": "bomb"})
    before = peak = process.memory_info().rss

    bombs = asyncio.gather(*(connector.send("things", "get", {"case": "bomb"}) for _ in range(60)))
    while not bombs.done():
        await asyncio.sleep(0.01)
        peak = max(peak, process.memory_info().rss)

    assert {answer.status for answer in await bombs} <= {202, 502, 503, 504}  # 202: later, by a worker
    assert (peak - before) / MIB <= GROWTH


@pytest.mark.parametrize("case", ["no HTTP", "headers of 1 MB", "no answer", "silence"])
async def test_a_bad_answer_instead_of_a_file_is_a_typed_error(hostile: Hostile, connector: ConnectorApi, case: str):
    script, status, _ = BAD_ANSWERS[case]
    hostile.records["bad"] = {"url": f"http://127.0.0.1:{hostile.port}/files/bad", "size": 1}
    hostile.scripts["bad"] = script

    answer = await connector.send("things", "download", {"case": "bad"})

    assert answer.status == status


GZIPPED = gzip.compress(BYTES * 100_000, mtime=0)
SIZE = len(BYTES) * 100_000
CUT_FILES: dict[str, bytes] = {
    "fewer bytes than Content-Length": framed(BYTES * 60_000, length=SIZE),
    "no last chunk": head("Transfer-Encoding: chunked") + b"%x\r\n" % SIZE + BYTES * 100_000 + b"\r\n",
    "half a chunk": head("Transfer-Encoding: chunked") + b"%x\r\n" % SIZE + BYTES * 60_000,
    "a close before the record's size": head("Connection: close") + BYTES * 99_999,
    "Content-Length short of the record's size": framed(BYTES * 99_999),
    "half a gzip, framed": framed(GZIPPED[:-50], "Content-Encoding: gzip"),
    "half a gzip and a close": head("Connection: close", "Content-Encoding: gzip") + GZIPPED[:-50],
}


@pytest.mark.parametrize("case", CUT_FILES)
async def test_a_truncated_file_never_looks_whole(hostile: Hostile, connector: ConnectorApi, case: str):
    hostile.records["cut"] = {"url": f"http://127.0.0.1:{hostile.port}/files/cut", "size": SIZE}
    hostile.scripts["cut"] = says(CUT_FILES[case])

    outcome = await _downloaded(connector)

    assert outcome in ("broken transfer", "upstream_truncated")


async def _downloaded(connector: ConnectorApi) -> str:
    try:
        answer = await connector.send("things", "download", {"case": "cut"})
    except aiohttp.ClientPayloadError:
        return "broken transfer"
    return answer.json()["code"] if answer.status >= 400 else "whole"


@pytest.mark.parametrize("case", CUT_FILES)
async def test_a_truncated_file_fails_its_job(hostile: Hostile, caller: Api, connector: ConnectorApi, case: str):
    hostile.records["cut"] = {"url": f"http://127.0.0.1:{hostile.port}/files/cut", "size": SIZE}
    hostile.scripts["cut"] = says(CUT_FILES[case])
    job = await connector.submit("things", "download", {"case": "cut"})

    result: Answer = await caller.get(f"/api/v1/jobs/{job['id']}/result?wait=30")

    assert (result.status, result.json()["code"]) == (502, "upstream_truncated")


async def test_a_cut_body_of_unknown_length_is_no_end_for_old_readers(
    hostile: Hostile, connector: ConnectorApi, front: Front
):
    hostile.records["cut"] = {"url": f"http://127.0.0.1:{hostile.port}/files/cut", "size": None}
    hostile.scripts["cut"] = says(CUT_FILES["half a chunk"])
    host, port = front.base_url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"GET {connector.path}/download/things?case=cut HTTP/1.0", f"Host: {host}", *_headers(connector), "", ""]
    writer.write("\r\n".join(lines).encode())

    with pytest.raises(ConnectionResetError):
        await reader.read(-1)
    writer.close()


def _headers(connector: ConnectorApi) -> list[str]:
    return [f"{name}: {value}" for name, value in connector.api.headers.items()]


#: ways to write an address within; PORT is the canary's
INSIDE = [
    "http://127.0.0.1:PORT/", "https://127.0.0.1:PORT/", "https://127.0.0.1/", "http://127.1:PORT/",
    "http://127.0.1:PORT/", "http://0:PORT/", "http://0.0.0.0:PORT/", "http://2130706433:PORT/",
    "http://017700000001:PORT/", "http://0177.0.0.1:PORT/", "http://0x7f000001:PORT/", "http://0x7f.0.0.1:PORT/",
    "http://127.0.0.1.:PORT/", "http://127.000.000.001:PORT/", "http://localhost:PORT/", "http://LOCALHOST:PORT/",
    "http://localhost.:PORT/", "http://localhost.localdomain:PORT/", "http://ip6-localhost:PORT/",
    "http://[::1]:PORT/", "http://[::]:PORT/", "http://[0:0:0:0:0:0:0:1]:PORT/", "http://[::ffff:127.0.0.1]:PORT/",
    "http://[::ffff:7f00:1]:PORT/", "http://[::127.0.0.1]:PORT/", "http://[64:ff9b::7f00:1]:PORT/",
    "http://[64:ff9b:1::7f00:1]:PORT/", "http://[2002:7f00:1::]:PORT/", "http://[fe80::1%25lo]:PORT/",
    "http://[fc00::1]:PORT/", "http://[fd00:ec2::254]/", "http://169.254.169.254/latest/meta-data/",
    "https://169.254.169.254/", "http://metadata.google.internal/", "https://metadata.internal/", "http://10.0.0.1/",
    "http://172.16.0.1/", "http://192.168.1.1/", "http://100.64.0.1/", "http://192.0.0.192/", "http://224.0.0.1/",
    "http://255.255.255.255/", "http://user@127.0.0.1:PORT/", "http://api.hostile.example.com@127.0.0.1:PORT/",
    "http://127.0.0.1:PORT#@api.hostile.example.com/", "http://127.0.0.1:PORT\\@api.hostile.example.com/",
    "http://①②⑦.0.0.1:PORT/", "http://127。0。0。1:PORT/", "http://127.0.0.1%2f.example.com:PORT/",
    "https://router.lan/", "https://printer.local/", "https://db.internal/", "https://intranet/",
    "file:///etc/passwd", "gopher://127.0.0.1:PORT/", "ftp://127.0.0.1:PORT/", "unix:///var/run/docker.sock",
    "//127.0.0.1:PORT/", "\thttp://127.0.0.1:PORT/", "javascript:alert(1)",
]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
async def test_no_address_within_is_reached_by_a_link_or_a_redirect(
    hostile: Hostile, canary: Canary, connector: ConnectorApi, address: str
):
    written = address.replace("PORT", str(canary.port))
    hostile.records["link"] = {"url": written, "size": None}
    hostile.records["redirect"] = {"url": f"http://127.0.0.1:{hostile.port}/files/redirect", "size": None}
    located = framed(b"", "Location: " + written.encode().decode("latin-1").replace("\t", ""), status="302 Found")
    hostile.scripts["redirect"] = says(located)

    answers = [await connector.send("things", "download", {"case": case}) for case in ("link", "redirect")]

    assert {(answer.status, answer.json()["code"]) for answer in answers} == {(502, "upstream_invalid_response")}
    assert canary.arrivals == 0


@pytest.mark.parametrize("address", INSIDE)
async def test_no_address_within_is_reached_by_a_tenants_own_settings(canary: Canary, caller: Api, address: str):
    written = address.replace("PORT", str(canary.port))
    bodies = [
        {"connector_type": "support-desk", "credentials": {"email": "a@example.com", "api_token": "t"},
         "environment": {"subdomain": written}},
        {"connector_type": "support-desk", "credentials": {"email": "a@example.com", "api_token": "t"},
         "environment": {"subdomain": written.partition("://")[2].rstrip("/") + "#"}},
        {"connector_type": "crm-query", "credentials": {"access_token": "t", "refresh_token": "r"},
         "environment": {"instance_url": written}},
        {"connector_type": "crm-query", "credentials": {"access_token": "t", "refresh_token": "r"},
         "environment": {"login_host": written}},
    ]  # fmt: skip

    answers = [
        await caller.post("/api/v1/integrations/connectors", {"workspace_name": "w", "name": "inside", **body})
        for body in bodies
    ]

    assert {(answer.status, answer.json()["code"]) for answer in answers} == {(422, "invalid_credentials")}
    assert canary.arrivals == 0


#: MiB by which a front end may grow while callers of one organization read nothing: its share of
#: GATEWAY_MAX_ANSWERS_BYTES, and what the answers take that are being made
UNREAD = 64 + GROWTH


async def test_answers_of_calls_that_are_not_read_take_the_memory_of_one_organizations_share(
    front: Front, caller: Api, connector: ConnectorApi, hostile: Hostile
):
    """The kernel has room for a part of each; without the share they would take 300 MiB."""
    hostile.scripts["large"] = says(framed(b'{"a": "' + b"x" * (16 * MIB) + b'"}', JSON))
    process, token = psutil.Process(front.pid), f"Authorization: {caller.headers['Authorization']}"
    call = json.dumps({"entity": "things", "action": "read_slowly", "params": {"case": "large"}}).encode()
    request = _request("POST", f"{connector.path}/execute", token, JSON, "Prefer: wait=100", body=call)
    await _length(front, request)  # load what is loaded at the first call
    first = process.memory_info().rss

    opened = await asyncio.gather(*(_head(front, request) for _ in range(20)))
    grown = (process.memory_info().rss - first) / MIB
    for _, writer in opened:
        writer.transport.abort()
    await eventually(lambda: _is_served(caller))

    assert {head.split()[1] for head, _ in opened} == {b"200", b"503"}
    assert grown <= UNREAD


async def test_a_connection_that_waits_for_its_next_request_holds_no_response(front: Front, caller: Api):
    request = _request("GET", "/api/v1/policies/schema", f"Authorization: {caller.headers['Authorization']}")
    length = await _length(front, request)  # load what is loaded at the first request
    process = psutil.Process(front.pid)
    before, opened = process.memory_info().rss, []

    for _ in range(50):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(front.base_url.rpartition(":")[2]))
        writer.write(request)
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(length)
        opened.append(writer)
    grown = process.memory_info().rss - before
    for writer in opened:
        writer.transport.abort()

    assert length > MIB
    assert grown < 10 * length


async def _length(front: Front, request: bytes) -> int:
    """The length of an answer; of a stream, which has none, 0: it is written no faster than its reader reads."""
    head, writer = await _head(front, request)
    writer.transport.abort()
    return int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)


async def _head(front: Front, request: bytes) -> tuple[bytes, asyncio.StreamWriter]:
    """The head of an answer, of which no more is read."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(front.base_url.rpartition(":")[2]))
    writer.write(request)
    return await reader.readuntil(b"\r\n\r\n"), writer


def _request(method: str, target: str, *lines: str, body: bytes = b"") -> bytes:
    head = [f"{method} {target} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *lines, "", ""]
    return "\r\n".join(head).encode() + body


async def _is_served(caller: Api) -> bool:
    return (await caller.get("/api/v1/jobs")).status == 200
