"""Egress policy: host names are checked before a URL is used, IP addresses when the socket is created."""

import errno
import re
import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any
from urllib.parse import quote

from aiohttp import (
    AddrInfoType,
    ClientConnectorError,
    ClientPayloadError,
    ClientRequest,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.tracing import Trace
from yarl import URL

from gateway.errors import GatewayError, UpstreamInvalidResponse
from gateway.foundation.aio.bodies import read_body
from gateway.foundation.hosts import host_matches
from gateway.upstream.content_coding import decoder_of
from gateway.upstream.name_lookups import NameLookups
from gateway.upstream.response_heads import BoundedResponses

# `is_global` of Python 3.11 lets through 6to4, NAT64, mapped and site-local forms: these lists follow the IANA
# special-purpose registries (RFC 6890).
_SPECIAL_IPV4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT, and one cloud's metadata
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # one cloud's host agent, in public space
        "169.254.0.0/16",  # link-local, and the usual metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments, and one cloud's metadata
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)

# All public IPv6 lies here; loopback, mapped, compatible, NAT64, discard, ULA, link-local and multicast do not.
_PUBLIC_IPV6 = IPv6Network("2000::/3")
_SPECIAL_IPV6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarking
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4 carries any IPv4 address
        "3fff::/20",  # documentation
    )
)

# An authority of plain characters reads alike in every parser: no user, percent, backslash, space or second spelling.
_PLAIN_URL = re.compile(r"https?://[a-z0-9._:\[\]-]+(?:[/?][\x21\x22\x24-\x7e]*)?", re.ASCII | re.IGNORECASE)
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

#: host and port of the request that a connection is being made for
_REQUEST_AUTHORITY: ContextVar[tuple[str, int] | None] = ContextVar("request_authority", default=None)


class ForbiddenAddress(OSError):
    """The egress policy forbids the address; the error never contains the address."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "address not allowed")


def is_public_address(address: str) -> bool:
    """Whether the text is an IP address in standard notation that belongs to the public Internet."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    match parsed:
        case IPv4Address():
            return not any(parsed in network for network in _SPECIAL_IPV4)
        case IPv6Address():
            is_special = any(parsed in network for network in _SPECIAL_IPV6)
            return parsed in _PUBLIC_IPV6 and parsed.scope_id is None and not is_special


def checked_url(
    url: str,
    *,
    hosts: Collection[str],
    ports: Collection[int] = (443,),
    override: URL | None = None,
    error: type[GatewayError] = UpstreamInvalidResponse,
) -> URL:
    """The URL, parsed; raises `error` unless it is https on a declared host, or on the operator's override."""
    spelt = quote(url, safe=_PRINTABLE, errors="replace")
    if _CONTROL.search(url) or not _PLAIN_URL.fullmatch(spelt):
        raise error("address refused: it must be a plain https URL without user, password or fragment")
    try:
        parsed = URL(spelt, encoded=True)
        port = parsed.port  # parsed only now; raises ValueError for a port that is not a number up to 65535
    except ValueError as reason:
        raise error("address refused: it is not a URL") from reason
    if override is not None and _origin(parsed) == _origin(override):
        return parsed
    if parsed.scheme.lower() != "https":
        raise error("address refused: only https is allowed")
    if port not in ports:
        raise error(f"address refused: its port must be {' or '.join(map(str, ports))}")
    if not host_matches(parsed.raw_host or "", hosts):
        raise error(f"address refused: its host must be a public name matching {' or '.join(hosts)}")
    return parsed


def parse_override(text: str) -> URL:
    """The operator's URL that replaces a kind's hosts; raises ValueError that says how to write it.

    It may have a path, which then comes before the path of each request.
    """
    url = URL(text)
    if url.scheme not in ("http", "https") or not url.raw_host or not url.port:
        raise ValueError("the address must be scheme, host and port, such as http://127.0.0.1:9001")
    if url.raw_query_string or url.raw_fragment or url.user:
        raise ValueError("the address must have no query, fragment or user; write http://127.0.0.1:9001")
    return url.origin() if url.raw_path == "/" else URL(f"{url.origin()}{url.raw_path.rstrip('/')}", encoded=True)


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """The connections that are allowed: to public addresses, and to the addresses of the operator's host and port."""

    #: host as the request names it, in lower case, and port
    allowed: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def of(cls, overrides: Iterable[URL]) -> "EgressPolicy":
        """The policy that allows these overrides and no other private address."""
        return cls(frozenset(((url.raw_host or "").lower(), url.port or 0) for url in overrides))

    def permits(self, address: str, port: int, authority: tuple[str, int] | None = None) -> bool:
        """Whether a socket may connect to the address, given the host and port of the request."""
        is_operators = authority is not None and authority in self.allowed and authority[1] == port
        return is_operators or is_public_address(address)


class EgressConnector(TCPConnector):
    """Checks the address that each socket connects to, so that a DNS answer cannot change after the check.

    Each connection bounds the bytes before a response's body. A kept-alive connection is used again for the same host
    and port without a new check: `checked_url` decides which kind may request which host.
    """

    def __init__(self, policy: EgressPolicy, resolver: AbstractResolver | None = None, **options: Any) -> None:
        super().__init__(socket_factory=self._open_socket, resolver=resolver or NameLookups(), **options)
        self._policy = policy
        self._factory = partial(BoundedResponses, loop=self._loop)  # type: ignore[assignment]  # a subclass

    async def _create_connection(
        self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout
    ) -> ResponseHandler:
        """Open a connection as the base class does, and give the socket factory the host and port of the request."""
        token = _REQUEST_AUTHORITY.set(((req.url.raw_host or "").lower(), req.url.port or 0))
        try:
            return await super()._create_connection(req, traces, timeout)
        finally:
            _REQUEST_AUTHORITY.reset(token)

    async def _resolve_host(self, host: str, port: int, traces: Sequence[Trace] | None = None) -> list[ResolveResult]:
        """Resolve a name; one with an empty or too long label counts as not found."""
        try:
            return await super()._resolve_host(host, port, traces)
        except UnicodeError as error:
            raise socket.gaierror(socket.EAI_NONAME, "the name is not valid") from error

    def _open_socket(self, address_info: AddrInfoType) -> socket.socket:
        family, kind, protocol, _, address = address_info
        if not self._policy.permits(str(address[0]), int(address[1]), _REQUEST_AUTHORITY.get()):
            raise ForbiddenAddress
        return socket.socket(family, kind, protocol)


async def bounded_response(
    policy: EgressPolicy,
    method: str,
    url: URL,
    headers: Mapping[str, str],
    body: bytes | None = None,
    *,
    timeout: float,
    max_bytes: int,
) -> tuple[int, bytes]:
    """The status and the body of one request, without redirects and cookies; raises the errors of aiohttp.

    A longer body is neither read nor decoded to its end: the result has more than `max_bytes` then.
    """
    async with (
        ClientSession(
            connector=EgressConnector(policy),
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(total=timeout),
            auto_decompress=False,  # a kilobyte can expand to a megabyte
            headers={"Accept-Encoding": "identity"},
        ) as session,
        session.request(method, url, headers=headers, data=body, allow_redirects=False) as response,
    ):
        received = await read_body(response.content, max_bytes)
        try:
            return response.status, _decoded(received, response.headers.get("Content-Encoding", ""), max_bytes)
        except GatewayError as error:
            raise ClientPayloadError(error.detail) from error


def _decoded(received: bytes, content_encoding: str, max_bytes: int) -> bytes:
    """The body, decoded to its end or beyond `max_bytes`; raises UpstreamInvalidResponse and UpstreamTruncated."""
    decoder, decoded = decoder_of(content_encoding), bytearray()
    if len(received) > max_bytes:
        return received
    for step in decoder.decoded(received):
        decoded += step
        if len(decoded) > max_bytes:
            return bytes(decoded)
    decoder.end()
    return bytes(decoded)


def is_forbidden(error: BaseException) -> bool:
    """Whether a connection failed because its address is forbidden; for code that translates aiohttp's errors."""
    return isinstance(error, ClientConnectorError) and isinstance(error.os_error, ForbiddenAddress)


def _origin(url: URL) -> tuple[str, str, int | None]:
    return url.scheme.lower(), (url.raw_host or "").lower(), url.port
