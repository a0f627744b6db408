"""Finds out where people sign in to an MCP server: its challenge, its metadata, and those of its authorization server.

Documents come from public addresses only, without redirects, and are bounded in size and time.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
from yarl import URL

from gateway.errors import InvalidParams, UpstreamError, UpstreamInvalidResponse
from gateway.foundation.mcp import VERSIONS
from gateway.kinds.importing.mcp_server import name_of, with_oauth
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream import mcp_messages
from gateway.upstream.challenges import Challenge, challenge_in
from gateway.upstream.mcp_servers import McpAddress, own_url, provisional_spec, session_of, url_of
from gateway.upstream.oauth_tokens.fetching import document_at
from gateway.upstream.oauth_tokens.server_metadata import (
    MAX_SERVERS,
    checked_identifier,
    oauth_members,
    read_resource_metadata,
    read_server_metadata,
    resource_metadata_urls,
    server_metadata_urls,
)
from gateway.upstream.requests import relocated
from gateway.upstream.upstreams import Upstreams

#: seconds for the challenge, and for everything
_TIMEOUT, _DEADLINE = 20.0, 40.0

Read = TypeVar("Read")


class McpSignIn(msgspec.Struct, frozen=True, kw_only=True):
    """How people sign in to an MCP server."""

    url: str
    #: the name of the kind that the server becomes
    kind: str
    #: the members of `oauth` in its spec
    oauth: dict[str, Any]

    @property
    def spec(self) -> ConnectorSpec:
        """The spec by which tokens are requested while the tools are not known."""
        url = URL(self.url, encoded=True)
        return provisional_spec(url, self.kind, **with_oauth(url.host or "", self.oauth))

    def address(self, token: str) -> McpAddress:
        """The server with a token that it has issued."""
        return McpAddress(url=self.url, token=token, kind=self.kind, oauth=self.oauth)


async def sign_in_of(upstreams: Upstreams, address: McpAddress) -> McpSignIn:
    """How people sign in to a server; raises InvalidParams with the reason if that cannot be found out."""
    url = url_of(upstreams, address)
    try:
        async with asyncio.timeout(_DEADLINE):
            return await _found(upstreams, url, address)
    except TimeoutError:
        reason = f"its metadata have not come within {_DEADLINE:.0f} seconds"
        raise InvalidParams(f"nobody can sign in to the MCP server: {reason}") from None
    except UpstreamInvalidResponse as refused:
        raise InvalidParams(f"nobody can sign in to the MCP server: {refused.detail}") from refused


async def _found(upstreams: Upstreams, url: URL, address: McpAddress) -> McpSignIn:
    challenge = await _challenge(upstreams, url, address)
    first = partial(_first, upstreams, upstreams.override_of(address.kind))
    resource = await first(resource_metadata_urls(url, challenge), partial(read_resource_metadata, server=url))
    refused = []
    for issuer in resource.authorization_servers[:MAX_SERVERS]:
        try:
            server = await first(server_metadata_urls(issuer), partial(read_server_metadata, issuer=issuer))
        except UpstreamInvalidResponse as error:
            refused.append(error.detail)
        else:
            kind = address.kind or name_of(resource.resource_name or "", url.host or "")
            return McpSignIn(url=str(url), kind=kind, oauth=oauth_members(resource, server, challenge))
    raise UpstreamInvalidResponse("; ".join(refused))


async def _challenge(upstreams: Upstreams, url: URL, address: McpAddress) -> Challenge:
    """The challenge of a request without credentials; an empty one if the server answers it."""
    session = session_of(upstreams, url, McpAddress(url=address.url, kind=address.kind), VERSIONS[0])
    request = mcp_messages.message(own_url(session, url), "server/discover", {}, VERSIONS[0])
    try:
        exchange = await session.exchange(request, timeout=_TIMEOUT)
    except UpstreamError:
        return Challenge()
    return challenge_in(exchange.response.headers)


async def _first(
    upstreams: Upstreams, override: URL | None, places: Sequence[str], read: Callable[[bytes], Read]
) -> Read:
    """What is read of the first document that can be used; raises UpstreamInvalidResponse with the reasons."""
    refused = []
    for place in places:
        url = checked_identifier(place)
        shown = f"{url.origin()}{url.raw_path}"
        try:
            return read(await _document(upstreams, relocated(url, override)))
        except UpstreamInvalidResponse as error:
            refused.append(f"{shown}: {error.detail}")
    raise UpstreamInvalidResponse("; ".join(refused))


async def _document(upstreams: Upstreams, url: URL) -> bytes:
    """The document at a URL; raises UpstreamInvalidResponse if there is none."""
    status, body = await document_at(upstreams.transport.policy, url)
    if 300 <= status < 400:
        raise UpstreamInvalidResponse("it redirects, which is not followed")
    if status != 200:
        raise UpstreamInvalidResponse(f"it answers {status}")
    return body
