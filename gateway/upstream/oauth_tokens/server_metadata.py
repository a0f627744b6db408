"""The metadata of an MCP server as a protected resource (RFC 9728), and of its authorization server (RFC 8414, OpenID
Connect Discovery 1.0).

Strangers write all of it. Identifiers must equal those that were asked for, and every URL must be https on a public
host. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec
from yarl import URL

from gateway.errors import UpstreamInvalidResponse
from gateway.foundation import payloads
from gateway.upstream.challenges import Challenge, scopes_in
from gateway.upstream.egress import checked_url
from gateway.upstream.oauth_tokens.client_keys import SIGNED, SIGNING_ALGORITHM

#: paths of metadata (RFC 8615): RFC 9728 §3, RFC 8414 §3, OpenID Connect Discovery §4
_RESOURCE, _SERVER, _PROVIDER = (
    f"/.well-known/{name}"
    for name in ("oauth-protected-resource", "oauth-authorization-server", "openid-configuration")
)
#: maximum characters of a URL
_MAX_URL = 2_000
#: maximum authorization servers that are tried
MAX_SERVERS = 3
#: RFC 6749 §2.3.1 as the spec language has it
_AUTHENTICATION: Mapping[str, Literal["basic", "body", "none"]] = {
    "client_secret_basic": "basic",
    "client_secret_post": "body",
    "none": "none",
}
_OFFLINE = "offline_access"

Metadata = TypeVar("Metadata", "ResourceMetadata", "ServerMetadata")


class ResourceMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata of a protected resource (RFC 9728 §2)."""

    resource: str
    authorization_servers: list[str]
    scopes_supported: list[str] | None = None
    resource_name: str | None = None


class ServerMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata of an authorization server (RFC 8414 §2)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    code_challenge_methods_supported: list[str] | None = None
    scopes_supported: list[str] | None = None
    token_endpoint_auth_methods_supported: list[str] | None = None
    token_endpoint_auth_signing_alg_values_supported: list[str] | None = None
    revocation_endpoint_auth_methods_supported: list[str] | None = None
    authorization_response_iss_parameter_supported: bool | None = None
    client_id_metadata_document_supported: bool | None = None


def resource_metadata_urls(server: URL, challenge: Challenge) -> Sequence[str]:
    """Where the metadata of a resource are: where its challenge says, else at the well-known URLs, in order."""
    if challenge.resource_metadata is not None:
        return (challenge.resource_metadata,)
    root = f"{server.origin()}{_RESOURCE}"
    own = "" if server.raw_path_qs == "/" else server.raw_path_qs
    return tuple(dict.fromkeys((f"{root}{own}", root)))


def server_metadata_urls(issuer: str) -> Sequence[str]:
    """Where the metadata of an authorization server may be, in the order in which they must be tried."""
    url = checked_identifier(issuer)
    origin, path = str(url.origin()).rstrip("/"), url.raw_path.rstrip("/")
    inserted = (f"{origin}{_SERVER}{path}", f"{origin}{_PROVIDER}{path}")
    return (*inserted, f"{origin}{path}{_PROVIDER}") if path else inserted


def read_resource_metadata(body: bytes, server: URL) -> ResourceMetadata:
    """The metadata of this server; raises UpstreamInvalidResponse for those of another one."""
    found = _decoded(body, ResourceMetadata)
    if not _covers(found.resource, server):
        raise UpstreamInvalidResponse(f"its resource is {_said(found.resource)}, which is another one")
    if not found.authorization_servers:
        raise UpstreamInvalidResponse("it names no authorization_servers")
    return found


def read_server_metadata(body: bytes, issuer: str) -> ServerMetadata:
    """The metadata of this issuer; raises UpstreamInvalidResponse if they are another's, or of no use."""
    found = _decoded(body, ServerMetadata)
    if found.issuer != issuer:  # RFC 8414 §3.3: identical, without any normalization
        raise UpstreamInvalidResponse(f"its issuer is {_said(found.issuer)}, and {_said(issuer)} was asked")
    for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"):
        if (url := getattr(found, name)) is not None:
            _require_endpoint(name, url)
    if "S256" not in (found.code_challenge_methods_supported or ()):
        raise UpstreamInvalidResponse("its code_challenge_methods_supported has no S256, without which no code is safe")
    if not _methods(found.token_endpoint_auth_methods_supported) and not _knows_keys(found):
        raise UpstreamInvalidResponse(
            f"its token_endpoint_auth_methods_supported has none of {', '.join(_AUTHENTICATION)}, and no {SIGNED} "
            f"with {SIGNING_ALGORITHM} for a client ID metadata document or a registration"
        )
    return found


def oauth_members(resource: ResourceMetadata, server: ServerMetadata, challenge: Challenge) -> dict[str, Any]:
    """The members of `oauth` in the spec of a kind."""
    wanted = challenge.scopes or scopes_in(resource.scopes_supported or ())
    offline = (_OFFLINE,) if wanted and _OFFLINE in (server.scopes_supported or ()) else ()
    members = {
        "authorization_url": server.authorization_endpoint,
        "token_url": server.token_endpoint,
        "revocation_url": server.revocation_endpoint,
        "registration_url": server.registration_endpoint,
        "issuer": server.issuer,
        "names_issuer": server.authorization_response_iss_parameter_supported,
        "reads_client_documents": server.client_id_metadata_document_supported,
        "resource": resource.resource,
        "client_document_authentication": SIGNED if _wants_signed_clients(server) else None,
        "client_authentication": (*_methods(server.token_endpoint_auth_methods_supported), SIGNED)[0],
        "revocation_authentication": _revocation_methods(server),
        "pkce": True,
        "scopes": scopes_in((*wanted, *offline)),
    }
    return {name: value for name, value in members.items() if value}


def checked_identifier(url: str) -> URL:
    """A URL of metadata, parsed; raises UpstreamInvalidResponse unless it is plain https on a public host."""
    host = _host_of(url)
    if len(url) > _MAX_URL or "{" in url or "}" in url:
        raise UpstreamInvalidResponse("address refused: it is too long, or has braces")
    return checked_url(url, hosts=[host])


def _host_of(url: str) -> str:
    try:
        return URL(url).host or ""
    except ValueError:
        return ""


def _require_endpoint(name: str, url: str) -> None:
    try:
        checked_identifier(url)
    except UpstreamInvalidResponse as refused:
        raise UpstreamInvalidResponse(f"its {name} is {_said(url)}: {refused.detail}") from refused


def _methods(supported: Sequence[str] | None) -> Sequence[Literal["basic", "body", "none"]]:
    """The methods of an endpoint that the gateway has, in the order of the server, but those with a secret first.

    Servers of the official MCP SDK name `client_secret_post` first, the only method with which they revoke tokens.
    """
    named = supported or ["client_secret_basic"]  # RFC 8414 §2
    ours = [_AUTHENTICATION[name] for name in dict.fromkeys(named) if name in _AUTHENTICATION]
    return sorted(ours, key=lambda method: method == "none")


def _revocation_methods(server: ServerMetadata) -> Sequence[Literal["basic", "body", "none"]]:
    """The methods that the server names for its revocation endpoint; none if it names no other than for tokens."""
    named = server.revocation_endpoint_auth_methods_supported
    methods = _methods(named) if server.revocation_endpoint and named else ()
    return () if set(methods) == set(_methods(server.token_endpoint_auth_methods_supported)) else tuple(methods)


def _wants_signed_clients(server: ServerMetadata) -> bool:
    """Whether apps with a metadata document, which have no secret, must sign, and the server can verify it."""
    named = server.token_endpoint_auth_methods_supported or ()
    return bool(server.client_id_metadata_document_supported) and _verifies(server) and "none" not in named


def _knows_keys(server: ServerMetadata) -> bool:
    """Whether the server can verify what the gateway signs, and learns its keys: from a document or a registration."""
    is_told = server.client_id_metadata_document_supported or server.registration_endpoint is not None
    return bool(is_told) and _verifies(server)


def _verifies(server: ServerMetadata) -> bool:
    algorithms = server.token_endpoint_auth_signing_alg_values_supported
    is_possible = algorithms is None or SIGNING_ALGORITHM in algorithms
    return is_possible and SIGNED in (server.token_endpoint_auth_methods_supported or ())


def _covers(resource: str, server: URL) -> bool:
    """Whether a resource is the server, or one that the server is below, such as its origin."""
    try:
        claimed = URL(resource, encoded=True)
        is_of_origin = claimed.origin() == server.origin() and not claimed.user and "#" not in resource
    except ValueError:
        return False
    own, whole = claimed.raw_path.rstrip("/"), server.raw_path.rstrip("/")
    is_above = own == whole or whole.startswith(f"{own}/")
    return is_of_origin and is_above and claimed.raw_query_string in ("", server.raw_query_string)


def _decoded(body: bytes, kind: type[Metadata]) -> Metadata:
    try:
        return payloads.typed(body, kind)
    except msgspec.MsgspecError as error:
        raise UpstreamInvalidResponse(f"it is no such metadata ({_said(str(error))})") from error


def _said(text: str) -> str:
    """A stranger's text for an error: short and printable, without the query, in which a secret may be."""
    shown = "".join(each if each.isascii() and each.isprintable() else " " for each in text.partition("?")[0])
    return shown[:200]
