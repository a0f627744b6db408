"""Hostile headers, query strings, paths and bodies: none causes a 5xx."""

import asyncio
from urllib.parse import quote

import pytest

from gateway.web.routes import ROUTES
from tests.web.test_routes import named, path_of

#: bytes, because callers can send bytes that are not text
HOSTILE = (
    b"",
    b"\xff",
    b"\xc2\xb2",  # a superscript two: a digit to str.isdigit, and no number
    b"\xd9\xa3",  # an Arabic three
    b"9" * 5000,
    b"-1",
    b"1e400",
    b"x" + b"a-" * 1500,
    b'"' * 50,
    b"\x80abc\xfe=\xff",
    b"bytes=" + b"9" * 5000 + b"-",
    b"bytes=0-" + b"9" * 4400,
    b"wait=" + b"9" * 5000,
    b"wait=\xc2\xb2",
    b"0001-01-01T00:00:00+14:00",
    b"Bearer \xff\xfe",
    b"Bearer caf\xc3\xa9",
    b"Basic \xff\xfe",
    b"Basic /////w==",
    b"00-" + b"0" * 32 + b"-" + b"f" * 16 + b"-01",
)
HEADERS = (
    *(
        "Authorization",
        "X-Organization-Id",
        "X-Request-Id",
        "Idempotency-Key",
        "Prefer",
        "Cache-Control",
        "traceparent",
    ),
    *("If-None-Match", "If-Range", "Range", "Last-Event-ID", "Accept", "X-ADP-Agent-SDK", "Content-Type", "Cookie"),
)
TEXTS = (
    *("\x00", "\ud800", "²", "9" * 5000, "-1", "0", "1e400", "nan", "'", "%", "\\", "a" * 5000, "", ",", "null"),
    *(
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "0001-01-01T00:00:00Z",
        "2026-01-01",
        "-99999999999999",
    ),
    "WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzE0OjAwIiwiMDAwMDAwMDAtMDAwMC0wMDAwLTAwMDAtMDAwMDAwMDAwMDAwIl0",  # before time
    "WyJcdTAwMDAiLCIwMDAwMDAwMC0wMDAwLTAwMDAtMDAwMC0wMDAwMDAwMDAwMDAiXQ",  # a cursor that holds NUL
    "WyIyMDI2LTAxLTAxVDAwOjAwOjAwIiwiMDAwMDAwMDAtMDAwMC0wMDAwLTAwMDAtMDAwMDAwMDAwMDAwIl0",  # a time without a zone
)
STREAMS = ("/events", "/mcp")
#: a 503 of /readyz is correct
SANE = [route for route in ROUTES if not route.path.endswith((*STREAMS, "/readyz"))]
BODY = b'{"entity":"tickets","action":"list"}'


@pytest.fixture
async def connection(front):
    """Requests byte by byte on a connection that is kept: `status = await send(method, path, headers, body)`."""
    port = int(front.base_url.rpartition(":")[2])
    opened = []

    async def send(method, path, headers=(), body=b""):
        if not opened:
            opened.extend(await asyncio.open_connection("127.0.0.1", port))
        reader, writer = opened
        lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: a", f"Content-Length: {len(body)}".encode(), *headers]
        writer.write(b"\r\n".join([*lines, b"", b""]) + body)
        async with asyncio.timeout(20):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), None
            )
            if method != "HEAD" and length:
                await reader.readexactly(length)
        status = int(head.split(b" ", 2)[1])
        if status == 400 or b"connection: close" in head.lower() or (length is None and status not in (204, 304)):
            writer.close()
            opened.clear()
        return status

    yield send
    if opened:
        opened[1].close()


def authorization(api):
    return b"Authorization: " + api.headers["Authorization"].encode()


@pytest.mark.parametrize("route", SANE, ids=named)
async def test_no_headers_make_a_5xx(connection, api, route):
    statuses = {}
    for value in HOSTILE:
        hostile = [header.encode() + b": " + value for header in HEADERS]
        statuses[value] = await connection(route.method, path_of(route), hostile, BODY)
        hostile = [authorization(api), *hostile[1:]]
        statuses["with a token", value] = await connection(route.method, path_of(route), hostile, BODY)

    assert {value: status for value, status in statuses.items() if status >= 500} == {}


@pytest.mark.parametrize("route", [route for route in SANE if route.query], ids=named)
async def test_no_query_makes_a_5xx(connection, api, route):
    names = [*(field.alias or name for name, field in route.query.model_fields.items()), "nothing"]
    texts = [quote(text.encode(errors="surrogatepass")) for text in TEXTS] + ["%FF", "%", "%zz", "%C2%B2", "\u00ff"]
    statuses = {
        (name, text): await connection(route.method, f"{path_of(route)}?{name}={text}", [authorization(api)])
        for name in names
        for text in texts
    }

    assert {which: status for which, status in statuses.items() if status >= 500} == {}


PATHS = ("%00", "%FF", "%", "%2F", "%2e%2e", "%C2%B2", "9" * 5000, "{}", "urn:uuid:1", "a%0d%0ab")


@pytest.mark.parametrize("route", [route for route in SANE if "{" in route.path], ids=named)
async def test_no_path_makes_a_5xx(connection, api, route):
    before, _, after = route.path.partition("{")
    rest = after.partition("}")[2].replace("{entity}", "attachments")
    statuses = {
        text: await connection(route.method, before + text + rest, [authorization(api)], BODY) for text in PATHS
    }

    assert {text: status for text, status in statuses.items() if status >= 500} == {}


FORMS = (
    b"grant_type=client_credentials&client_id=%FF&client_secret=%C3",
    b"\xff\xfe\xfd",
    b"grant_type=client_credentials&client_id=" + b"9" * 100_000,
    b"&" * 100_000,
    b"=" * 1000,
    b"grant_type=client_credentials&client_id=%00&client_secret=%00",
    b"grant_type=client_credentials&client_id=a&client_id=b",
    b"grant_type=%ED%A0%80",
)
JSON = (
    *(
        b"\xff",
        b"[",
        b"null",
        b"[]",
        b'"a"',
        b"{}",
        b"1" * 5000,
        b'{"a":' * 2000,
        b"[" * 100_000,
        b'{"entity":"\\ud800"}',
    ),
    b'{"entity":"tickets","action":"list","params":' + b'{"a":' * 900 + b"1" + b"}" * 901,
    b'{"entity":"tickets","action":"context_store_search","params":{"query":{"filter":'
    + b'{"not":' * 300
    + b"{}"
    + b"}" * 303,
    b'{"entity":"tickets","action":"context_store_search","params":{"query":{"filter":{"eq":{"id":1e308,"status":"\\u0000"}}}}}',
    b'{"entity":"tickets","action":"context_store_search","params":{"query":{"filter":{"eq":{"id":'
    + b"9" * 400
    + b"}}}}}",
    b'{"entity":"tickets","action":"context_store_search","params":{"query":{"filter":{"like":{"subject":"\\u0000%"}}}}}',
    b'{"entity":"tickets","action":"context_store_search","params":{"query":{"filter":{"gt":{"updated_at":"0001-01-01T00:00:00+14:00"}}},"cursor":"\\u0000"}}',
    b'{"entity":"tickets","action":"list","params":{"limit":' + b"9" * 5000 + b"}}",
    b'{"entity":"tickets","action":"list","labels":{"a":"\\u0000"}}',
)
CONTENT_TYPES = (
    *(
        b"application/json",
        b"application/x-www-form-urlencoded",
        b"application/json; charset=foo",
        b"text/plain; charset=",
    ),
    *(b"application/x-www-form-urlencoded; charset=foo", b"application/x-www-form-urlencoded; charset=utf-16"),
    *(
        b"multipart/form-data",
        b"multipart/form-data; boundary=\xff",
        b"application/x-www-form-urlencoded; charset=\xff",
    ),
)


@pytest.mark.parametrize("route", [route for route in SANE if route.method in ("POST", "PUT", "PATCH")], ids=named)
async def test_no_body_makes_a_5xx(connection, api, support_desk, route):
    path = path_of(route)
    if "{connector_id}" in route.path:
        path = support_desk.path + route.path.partition("{connector_id}")[2]
    token = [] if route.is_open else [authorization(api)]
    statuses = {
        (content_type, body[:200]): await connection(
            route.method, path, [*token, b"Content-Type: " + content_type], body
        )
        for content_type in CONTENT_TYPES
        for body in (*FORMS, *JSON)
    }

    assert {which: status for which, status in statuses.items() if status >= 500} == {}


@pytest.mark.parametrize("header", HEADERS[1:])
async def test_no_header_about_a_job_a_file_or_an_operation_makes_a_5xx(connection, api, support_desk, header):
    job = f"/api/v1/jobs/{(await support_desk.submit('tickets', 'list'))['id']}"
    file = f"{support_desk.path}/download/attachments?attachment_id=1"
    statuses = {
        (method, path, value): await connection(
            method, path, [authorization(api), header.encode() + b": " + value], body
        )
        for method, path, body in (
            ("GET", job, b""),
            ("GET", f"{job}/result", b""),
            ("GET", file, b""),
            ("POST", f"{support_desk.path}/execute", BODY),
        )
        for value in HOSTILE
    }

    assert {which: status for which, status in statuses.items() if status >= 500} == {}


@pytest.mark.parametrize("value", HOSTILE)
async def test_an_event_stream_refuses_an_invalid_last_event_id(connection, api, support_desk, value):
    path = f"/api/v1/jobs/{(await support_desk.submit('tickets', 'list'))['id']}/events"

    status = await connection("GET", path, [authorization(api), b"Last-Event-ID: " + value])

    assert status in (200, 400)
