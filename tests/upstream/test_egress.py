"""The outbound policy: tables for the pure judgements, a canary server for the connections themselves."""

import asyncio
import gzip
import socket
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest
from aiohttp import ClientPayloadError, web
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from gateway.errors import InvalidParams, UpstreamInvalidResponse
from gateway.foundation.hosts import host_matches, is_forbidden_host
from gateway.upstream.egress import (
    EgressConnector,
    EgressPolicy,
    bounded_response,
    checked_url,
    is_forbidden,
    is_public_address,
    parse_override,
)
from gateway.upstream.requests import relocated
from tests.harness.serving import served

FORBIDDEN_ADDRESSES = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.7",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:8.8.8.8",
    "::ffff:0:8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:a9fe:a9fe::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700::1111%eth0",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "127.1",
    "0177.0.0.1",
    "127.0.0.01",
    "2130706433",
    "0x7f000001",
    "127.0.0.1.",
    "\uff11\uff12\uff17.0.0.1",
    "localhost",
    "",
]


@pytest.mark.parametrize("address", FORBIDDEN_ADDRESSES)
def test_an_address_that_is_not_plainly_public_is_forbidden(address):
    policy = EgressPolicy()

    permitted = policy.permits(address, 443, authority=("files.example.com", 443))

    assert not permitted


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00:1450::200e",
        "2001:4860:4860::8888",
        "2001:200::1",
    ],
)
def test_a_public_address_is_permitted(address):
    assert is_public_address(address)


@pytest.mark.parametrize(
    ("address", "port", "authority", "permitted"),
    [
        ("127.0.0.1", 9001, ("127.0.0.1", 9001), True),
        ("10.1.2.3", 9001, ("stub", 9001), True),
        ("127.0.0.1", 9002, ("127.0.0.1", 9002), False),
        ("127.0.0.1", 9002, ("127.0.0.1", 9001), False),
        ("127.0.0.2", 9001, ("127.0.0.2", 9001), False),
        ("127.0.0.1", 9001, ("files.example.com", 9001), False),
        ("127.0.0.1", 9001, ("localhost", 9001), False),
        ("127.0.0.1", 9001, None, False),
        ("10.1.2.3", 443, ("stub", 443), False),
    ],
)
def test_an_override_permits_exactly_its_host_and_port(address, port, authority, permitted):
    policy = EgressPolicy.of([URL("http://127.0.0.1:9001"), URL("http://stub:9001")])

    assert policy.permits(address, port, authority=authority) is permitted


FORBIDDEN_HOSTS = [
    "",
    ".",
    "localhost",
    "LocalHost",
    "localhost.",
    "a.localhost",
    "localhost.localdomain",
    "metadata",
    "metadata.google.internal",
    "printer.local",
    "router.lan",
    "1.0.0.127.in-addr.arpa",
    "127.0.0.1",
    "127.0.0.1.",
    "8.8.8.8",
    "127.1",
    "127.0.1",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "0177.0.0.0x1",
    "0x7f.0.0.1",
    "0x7f000001",
    "0x7F.1",
    "example.0x7f",
    "example.com.127",
    "127\u30020\u30020\u30021",
    "\uff11\uff12\uff17.0.0.1",
    "\u2460\u2461\u2466.0.0.1",
    "\u24dbocalhost.example",
    "%31%32%37.0.0.1",
    "127.0.0.1%00.example.com",
    "::1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "::ffff:7f00:1",
    "fe80::1%eth0",
    "good.example.com@127.0.0.1",
    "example.com:80",
    "example.com.",
    "example..com",
    "-a.example.com",
    "exa mple.com",
    "example.com\n",
    "example.com\x00",
    "a" * 64 + ".example.com",
    "a." * 127 + "com",
]


@pytest.mark.parametrize("host", FORBIDDEN_HOSTS)
def test_a_host_that_is_no_public_name_is_forbidden_and_matches_nothing(host):
    assert is_forbidden_host(host)
    assert not host_matches(host, ["*", host])


@pytest.mark.parametrize(
    ("host", "patterns", "matches"),
    [
        ("api.example.com", ["api.example.com"], True),
        ("API.Example.com", ["api.example.COM"], True),
        ("acme.example.com", ["*.example.com"], True),
        ("a.b.example.com", ["*.example.com"], True),
        ("example.com", ["*.example.com"], False),
        ("evilexample.com", ["*.example.com"], False),
        ("acme.example.com.evil.org", ["*.example.com"], False),
        ("api.example.com", ["example.com", "other.example.com"], False),
        ("xn--fa-hia.de", ["*"], True),
        ("bucket_1.example.com", ["*"], True),
        ("api.example.com", [], False),
    ],
)
def test_a_host_matches_its_name_or_a_wildcard_above_it(host, patterns, matches):
    assert host_matches(host, patterns) is matches


@pytest.mark.parametrize(
    "url",
    [
        "https://acme.example.com/file",
        "https://acme.example.com",
        "https://acme.example.com/a?b=c",
        "HTTPS://Acme.Example.com/file",
        "https://acme.example.com/a%2Fb?X-Signature=a%2Bb%7Ec+d&e=@:!$",
        "https://files.example.org/a/b%20c",
    ],
)
def test_a_declared_https_url_keeps_its_spelling(url):
    checked = checked_url(url, hosts=["*.example.com", "files.example.org"])

    assert str(checked).lower() == url.lower()


def test_spaces_and_letters_beyond_ascii_in_a_path_are_percent_encoded():
    checked = checked_url("https://files.example.org/a b/é.pdf", hosts=["files.example.org"])

    assert str(checked) == "https://files.example.org/a%20b/%C3%A9.pdf"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/relative",
        "//acme.example.com/x",
        "acme.example.com/x",
        "http://acme.example.com/x",
        "ftp://acme.example.com/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https:///x",
        "https://",
        "https://acme.example.com:8443/x",
        "https://acme.example.com:80/x",
        "https://acme.example.com:0/x",
        "https://acme.example.com:99999/x",
        "https://acme.example.com:x/x",
        "https://user@acme.example.com/x",
        "https://user:password@acme.example.com/x",
        "https://@acme.example.com/x",
        "https://acme.example.com@127.0.0.1/x",
        "https://127.0.0.1\\@acme.example.com/x",
        "https://acme.example.com\\.evil.org/x",
        "https://acme.example.com/x#part",
        "https://evil.org#.example.com/",
        "https://evil.org?.example.com/",
        "https://evil.org/.example.com/",
        "https://acme.example.com.evil.org/",
        "https://acme.example.com%2eevil.org/",
        "https://evil.org%00.example.com/",
        "https://acme\u3002example.com/",
        " https://acme.example.com/",
        "https://acme.example.com/a\r\nHost: evil.org",
        "https://acme.exa\tmple.com/",
        "https://acme.example.com./",
        "https://[::1]/x",
        "https://[::ffff:127.0.0.1]/x",
        "https://[fe80::1%25eth0]/x",
        "https://[::1/x",
        "https://127.0.0.1/x",
        "https://2130706433/x",
        "https://169.254.169.254/latest/meta-data/",
        "https://evil.org/",
        "http://127.0.0.1:9002/x",
        "https://127.0.0.1:9001/x",
        "http://user@127.0.0.1:9001/x",
        "http://localhost:9001/x",
        "http://127.1:9001/x",
        "http://127.0.0.1:9001.example.com/x",
        "\udcff",
    ],
)
def test_any_other_url_is_refused(url):
    override = URL("http://127.0.0.1:9001")

    with pytest.raises(UpstreamInvalidResponse, match="address refused"):
        checked_url(url, hosts=["*.example.com"], override=override)


def test_a_wildcard_for_all_hosts_still_refuses_addresses_and_inner_names():
    assert checked_url("https://cdn.anywhere.net/x", hosts=["*"]).host == "cdn.anywhere.net"
    with pytest.raises(UpstreamInvalidResponse):
        checked_url("https://8.8.8.8/x", hosts=["*"])
    with pytest.raises(UpstreamInvalidResponse):
        checked_url("https://metadata.google.internal/x", hosts=["*"])


def test_the_override_and_declared_ports_are_accepted():
    override = URL("http://127.0.0.1:9001")

    assert checked_url("http://127.0.0.1:9001/a?b", hosts=[], override=override).port == 9001
    assert checked_url("https://a.example.com:443/", hosts=["*.example.com"]).port == 443
    assert checked_url("https://a.example.com:8443/", hosts=["*.example.com"], ports=(443, 8443)).port == 8443


def test_the_caller_chooses_the_error_of_a_refused_url():
    with pytest.raises(InvalidParams, match=r"public name matching a\.example\.com or b\.example\.com"):
        checked_url("https://evil.org/", hosts=["a.example.com", "b.example.com"], error=InvalidParams)


@pytest.mark.parametrize("text", ["http://127.0.0.1:9001", "http://127.0.0.1:9001/"])
def test_an_override_is_read_as_an_origin(text):
    assert str(parse_override(text)) == "http://127.0.0.1:9001"


@pytest.mark.parametrize("text", ["http://127.0.0.1:9001/base/kind", "http://127.0.0.1:9001/base/kind/"])
def test_an_override_may_have_a_path_before_the_paths_of_requests(text):
    moved = relocated(URL("https://a.example.com/v1/things?x=1"), parse_override(text))

    assert str(moved) == "http://127.0.0.1:9001/base/kind/v1/things?x=1"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "h:1",
        "//h:1",
        "ftp://h:1",
        "http://u:p@h:1",
        "http://h:1?x",
        "http://h:1#x",
        "http://h:x",
    ],
)
def test_an_override_that_is_more_than_an_origin_is_refused(text):
    with pytest.raises(ValueError):
        parse_override(text)


@dataclass
class Canary:
    """A server on loopback that counts whoever reaches it."""

    port: int = 0
    arrivals: list[object] = field(default_factory=list)

    async def sing(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.arrivals.append(writer.get_extra_info("peername"))
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nsong")
        await writer.drain()
        writer.close()


class Names(AbstractResolver):
    """Stands for DNS: each name's answers in turn, the last one for ever."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self._answers = {name.replace("_", "."): list(turns) for name, turns in answers.items()}

    async def resolve(self, host, port=0, family=socket.AF_INET) -> list[ResolveResult]:
        turns = self._answers[host]
        addresses = turns.pop(0) if len(turns) > 1 else turns[0]
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in addresses
        ]

    async def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
async def canary() -> AsyncIterator[Canary]:
    canary = Canary()
    server = await asyncio.start_server(canary.sing, "127.0.0.1", 0)
    canary.port = server.sockets[0].getsockname()[1]
    async with server:
        yield canary


@asynccontextmanager
async def a_session(*overrides: str, names: Names | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    policy = EgressPolicy.of(map(URL, overrides))
    connector = EgressConnector(policy, resolver=names, use_dns_cache=False)
    async with aiohttp.ClientSession(connector=connector, trust_env=False) as session:
        yield session


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.2",
        "0.0.0.0",
        "localhost",
        "localhost.",
        "127.1",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "0x7f.1",
        "0x7f000001",
        "127\u30020\u30020\u30021",
        "\u246027.0.0.1",
        "user@127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
    ],
)
async def test_no_notation_of_loopback_reaches_the_canary(canary, host):
    async with a_session() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"http://{host}:{canary.port}/")

    assert canary.arrivals == []


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1", "127.1", "localhost"])
async def test_a_name_that_resolves_to_loopback_never_reaches_the_canary(canary, address):
    async with a_session(names=Names(files_example_com=[[address]])) as session:
        with pytest.raises(aiohttp.ClientConnectorError) as refusal:
            await session.get(f"http://files.example.com:{canary.port}/")

    assert is_forbidden(refusal.value)
    assert address not in str(refusal.value)
    assert canary.arrivals == []


async def test_a_name_with_many_forbidden_answers_is_forbidden(canary):
    names = Names(files_example_com=[["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254"]])

    async with a_session(names=names) as session:
        with pytest.raises(aiohttp.ClientConnectorError) as refusal:
            await session.get(f"http://files.example.com:{canary.port}/")

    assert is_forbidden(refusal.value)
    assert canary.arrivals == []


async def test_a_name_that_changes_its_answer_after_a_check_never_reaches_the_canary(canary):
    names = Names(rebinding_example_com=[["93.184.216.34"], ["127.0.0.1"]])
    [checked] = await names.resolve("rebinding.example.com")

    async with a_session(names=names) as session:
        with pytest.raises(aiohttp.ClientConnectorError) as refusal:
            await session.get(f"http://rebinding.example.com:{canary.port}/")

    assert is_public_address(checked["host"])
    assert is_forbidden(refusal.value)
    assert canary.arrivals == []


async def test_an_override_reaches_its_host_and_port(canary):
    names = Names(stub=[["127.0.0.1"]])
    overrides = [f"http://127.0.0.1:{canary.port}", f"http://STUB:{canary.port}"]

    async with a_session(*overrides, names=names) as session:
        async with session.get(f"http://127.0.0.1:{canary.port}/") as by_address:
            assert await by_address.text() == "song"
        async with session.get(f"http://Stub:{canary.port}/") as by_name:
            assert await by_name.text() == "song"

    assert len(canary.arrivals) == 2


@pytest.mark.parametrize("host", ["a..example.com", ".example.com", f"{'a' * 64}.example.com"])
async def test_a_name_that_cannot_be_is_not_found(host):
    async with aiohttp.ClientSession(connector=EgressConnector(EgressPolicy())) as session:
        with pytest.raises(aiohttp.ClientConnectorDNSError):
            await session.get(f"http://{host}/")


@pytest.mark.parametrize("host", ["127.0.0.2", "files.example.com"])
async def test_an_override_opens_no_other_host_on_its_port(canary, host):
    names = Names(files_example_com=[["127.0.0.1"]])

    async with a_session(f"http://127.0.0.1:{canary.port}", names=names) as session:
        with pytest.raises(aiohttp.ClientConnectorError) as refusal:
            await session.get(f"http://{host}:{canary.port}/")

    assert is_forbidden(refusal.value)
    assert canary.arrivals == []


async def test_an_override_opens_no_other_port_of_its_host(canary):
    async with a_session(f"http://127.0.0.1:{canary.port + 1}") as session:
        with pytest.raises(aiohttp.ClientConnectorError) as refusal:
            await session.get(f"http://127.0.0.1:{canary.port}/")

    assert is_forbidden(refusal.value)
    assert canary.arrivals == []


async def test_two_requests_at_once_do_not_share_an_allowance(canary):
    names = Names(stub=[["127.0.0.1"]], files_example_com=[["127.0.0.1"]])

    async with a_session(f"http://stub:{canary.port}", names=names) as session:
        allowed, refused = await asyncio.gather(
            session.get(f"http://stub:{canary.port}/"),
            session.get(f"http://files.example.com:{canary.port}/"),
            return_exceptions=True,
        )
        allowed.release()

    assert allowed.status == 200
    assert is_forbidden(refused)
    assert len(canary.arrivals) == 1


async def test_a_redirect_to_the_canary_is_refused(canary):
    async def point_at_canary(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        location = f"http://127.0.0.1:{canary.port}/".encode()
        writer.write(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + location + b"\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(point_at_canary, "127.0.0.1", 0)
    redirecting = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async with server, a_session(redirecting) as session:
        with pytest.raises(aiohttp.ClientConnectorError) as refusal:
            await session.get(redirecting, allow_redirects=True)

    assert is_forbidden(refusal.value)
    assert canary.arrivals == []


@pytest.fixture
async def in_pieces() -> AsyncIterator[URL]:
    """The URL of a body of ten bytes that arrive in two pieces."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234")
        await writer.drain()
        for _ in range(100):  # meanwhile the client reads the first piece
            await asyncio.sleep(0)
        writer.write(b"56789")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/document")


async def answered(coding: str, content: bytes, max_bytes: int) -> bytes:
    """What is read of a response with this coding and content, although none was accepted."""
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.headers["Accept-Encoding"])
        return web.Response(body=content, headers={"Content-Encoding": coding})

    app = web.Application()
    app.router.add_get("/", answer)
    async with served(app) as url:
        status, body = await bounded_response(
            EgressPolicy.of([URL(url)]), "GET", URL(url), {}, timeout=5, max_bytes=max_bytes
        )
    assert (status, asked) == (200, ["identity"])
    return body


@pytest.mark.parametrize(("coding", "pack"), [("identity", bytes), ("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_a_short_response_with_a_coding_that_was_not_accepted_is_read(coding, pack):
    assert await answered(coding, pack(b"{}"), 100) == b"{}"


async def test_a_short_response_that_expands_is_decoded_to_its_bound_only():
    assert len(await answered("gzip", gzip.compress(bytes(100 << 20)), 100_000)) < 200_000


@pytest.mark.parametrize(
    ("coding", "content"), [("br", b"{}"), ("gzip", b"{}"), ("gzip", gzip.compress(b"{}", mtime=0)[:-9])]
)
async def test_a_response_that_cannot_be_decoded_is_an_error_of_the_connection(coding, content):
    with pytest.raises(ClientPayloadError):
        await answered(coding, content, 100)


@pytest.mark.parametrize(("max_bytes", "body"), [(10, b"0123456789"), (4, b"01234")])
async def test_a_response_in_pieces_is_read_whole_up_to_its_bound(in_pieces: URL, max_bytes: int, body: bytes):
    policy = EgressPolicy.of([in_pieces])

    assert await bounded_response(policy, "GET", in_pieces, {}, timeout=5, max_bytes=max_bytes) == (200, body)
