"""Hosts by their client id: the https URL of a metadata document, or the id of a registered host."""

import time
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from gateway.access.identity.attempts import Attempts
from gateway.access.identity.model import id_of
from gateway.access.oauth_server.model import Host
from gateway.access.oauth_server.requests import is_redirect_uri
from gateway.access.oauth_server.store import AuthorizationStore
from gateway.contract.oauth import COMMAND_LINE
from gateway.errors import OAuthError
from gateway.upstream.egress import EgressPolicy, bounded_response

#: the gateway's own command line, a native application on the person's machine (RFC 8252)
_COMMAND_LINE = Host(COMMAND_LINE, "The gateway's command line", ("http://127.0.0.1/",))
#: maximum bytes of a document, and timeout of its request in seconds
_MAX_BYTES, _TIMEOUT = 16 << 10, 5.0
#: seconds for which documents are cached, and their maximum number
_TRUST, _MAX_CACHED = 300.0, 1000
_MAX_NAME, _MAX_REDIRECTS = 200, 20


class Hosts:
    """Looks hosts up; documents come from public addresses only, without redirects."""

    def __init__(self, store: AuthorizationStore, attempts: Attempts, policy: EgressPolicy | None = None) -> None:
        self._store = store
        self._attempts = attempts
        self._policy = policy or EgressPolicy()
        self._cache: dict[str, tuple[float, Host]] = {}

    async def host(self, client_id: str, address: str) -> Host:
        """The host of that client id; raises OAuthError `invalid_client`, and RateLimited by the caller's address."""
        if client_id == COMMAND_LINE:
            return _COMMAND_LINE
        if client_id.startswith("https://"):
            return await self._by_document(client_id, address)
        id_ = id_of(client_id)
        host = None if id_ is None else await self._store.host(id_)
        if host is None:
            raise OAuthError("invalid_client", "client_id is unknown; it is the https URL of a metadata document")
        return host

    async def is_host(self, client_id: str) -> bool:
        """Whether the id is that of a host, which has no secret; no document is requested."""
        id_ = id_of(client_id)
        return (
            client_id == COMMAND_LINE
            or client_id.startswith("https://")
            or (id_ is not None and await self._store.host(id_) is not None)
        )

    async def _by_document(self, client_id: str, address: str) -> Host:
        until, cached = self._cache.get(client_id, (0.0, None))
        if cached is not None and until > time.monotonic():
            return cached
        await self._attempts.require("client metadata document", address)
        host = host_of(client_id, await self._fetch(client_id))
        if len(self._cache) >= _MAX_CACHED:
            self._cache.clear()
        self._cache[client_id] = (time.monotonic() + _TRUST, host)
        return host

    async def _fetch(self, client_id: str) -> Any:
        url = _document_url(client_id)
        accept = {"Accept": "application/json"}
        try:
            status, body = await bounded_response(
                self._policy, "GET", url, accept, timeout=_TIMEOUT, max_bytes=_MAX_BYTES
            )
            if status != 200 or len(body) > _MAX_BYTES:
                raise OAuthError("invalid_client", f"the client's document answers with status {status}")
            return msgspec.json.decode(body)
        except (aiohttp.ClientError, OSError, msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise OAuthError("invalid_client", "the client's metadata document cannot be read") from error


def _document_url(client_id: str) -> URL:
    try:
        url = URL(client_id)
        is_good = bool(url.host) and url.path not in ("", "/") and url.port == 443 and not (url.user or url.fragment)
    except ValueError:
        is_good = False
    if not is_good:
        raise OAuthError("invalid_client", "client_id must be an https URL with a path")
    return url


def host_of(client_id: str, document: Any) -> Host:
    """The host that a metadata document describes; raises OAuthError for an invalid one."""
    if not isinstance(document, dict) or document.get("client_id") != client_id:
        raise OAuthError("invalid_client", "the client's document is for another client_id")
    if document.get("token_endpoint_auth_method", "none") != "none":
        raise OAuthError("invalid_client", "token_endpoint_auth_method of the client's document must be none")
    return Host(client_id, _name(document), redirect_uris_of(document))


def redirect_uris_of(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The redirect URIs of client metadata (RFC 7591 §2); raises OAuthError for any that is unsafe."""
    uris = document.get("redirect_uris")
    if not isinstance(uris, list) or not 0 < len(uris) <= _MAX_REDIRECTS:
        raise OAuthError("invalid_redirect_uri", f"redirect_uris must list 1 to {_MAX_REDIRECTS} addresses")
    for uri in uris:
        if not isinstance(uri, str) or not is_redirect_uri(uri):
            raise OAuthError(
                "invalid_redirect_uri", "redirect_uris may be https, http on the loopback, or a private-use scheme"
            )
    return tuple(uris)


def _name(document: Mapping[str, Any]) -> str:
    name = document.get("client_name")
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME or not name.isprintable():
        raise OAuthError("invalid_client_metadata", f"client_name must be 1 to {_MAX_NAME} printable characters")
    return name


def registered_name(document: Mapping[str, Any]) -> str:
    """The name under which a host registers itself."""
    return _name({"client_name": "An agent's host", **document})
