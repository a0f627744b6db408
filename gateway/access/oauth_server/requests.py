"""Validates hosts' requests for access against the host's metadata and the resources; pure.

RFC 6749 §4.1, RFC 7636 (S256 only), RFC 8707, RFC 8252 §7.3.
"""

import re
from collections.abc import Collection, Mapping

from authlib.oauth2.rfc7636.challenge import CODE_CHALLENGE_PATTERN, CODE_VERIFIER_PATTERN, create_s256_code_challenge
from yarl import URL

from gateway.access.identity.redirect_urls import HOST_NAME, MAX_LENGTH
from gateway.access.oauth_server.model import Host
from gateway.contract.oauth import AGENT_SCOPES, AuthorizationRequest
from gateway.errors import OAuthError
from gateway.foundation.hosts import is_loopback

#: schemes that a browser executes or reads itself instead of opening another program
_UNSAFE_SCHEMES = frozenset(
    ["javascript", "data", "file", "vbscript", "blob", "about", "ftp", "ws", "wss", "view-source", "mailto"]
)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,99}")
_MAX_STATE = 2000


def redirect_of(query: Mapping[str, str], host: Host) -> str:
    """The redirect URI, which must be one of the host's, except for the port of a loopback address.

    Raises OAuthError; a browser must not be redirected before this check.
    """
    redirect_uri = query.get("redirect_uri") or (host.redirect_uris[0] if len(host.redirect_uris) == 1 else "")
    if not any(_is_same(redirect_uri, registered) for registered in host.redirect_uris):
        raise OAuthError("invalid_request", "redirect_uri is not one of the client's")
    return redirect_uri


def request_of(
    query: Mapping[str, str], host: Host, redirect_uri: str, resources: Collection[str]
) -> AuthorizationRequest:
    """The validated request; raises OAuthError with the error for the host."""
    if query.get("response_type") != "code":
        raise OAuthError("unsupported_response_type", "response_type must be code")
    challenge = query.get("code_challenge", "")
    if query.get("code_challenge_method") != "S256" or not CODE_CHALLENGE_PATTERN.match(challenge):
        raise OAuthError("invalid_request", "a code_challenge with the method S256 is needed (RFC 7636)")
    state = query.get("state")
    if state is not None and len(state) > _MAX_STATE:
        raise OAuthError("invalid_request", f"state is longer than {_MAX_STATE} characters")
    return AuthorizationRequest(
        host_id=host.id,
        host_name=host.name,
        redirect_uri=redirect_uri,
        scopes=scopes_of(query),
        challenge=challenge,
        resource=resource_of(query, resources),
        state=state,
    )


def scopes_of(query: Mapping[str, str]) -> tuple[str, ...]:
    """The requested scopes; both if the request names none."""
    requested_scopes = query.get("scope", "").split() or list(AGENT_SCOPES)
    if not set(requested_scopes) <= {*AGENT_SCOPES, "offline_access"}:
        raise OAuthError("invalid_scope", f"scope may contain {', '.join(AGENT_SCOPES)}")
    return tuple(scope for scope in AGENT_SCOPES if scope in requested_scopes) or AGENT_SCOPES[:1]


def resource_of(query: Mapping[str, str], resources: Collection[str]) -> str:
    """The resource for which tokens are valid (RFC 8707); the first one if the request names none."""
    resource = query.get("resource")
    if not resource:
        return next(iter(resources))
    if resource.rstrip("/") not in resources:
        raise OAuthError("invalid_target", "resource is not a resource of this server (RFC 8707)")
    return resource.rstrip("/")


def is_verified(verifier: str, challenge: str) -> bool:
    """Whether the code verifier matches the code challenge."""
    return bool(CODE_VERIFIER_PATTERN.match(verifier)) and create_s256_code_challenge(verifier) == challenge


def is_redirect_uri(text: str) -> bool:
    """Whether a browser may be redirected to it: https, http on the loopback, or a private-use scheme."""
    if len(text) > MAX_LENGTH:
        return False
    try:
        url = URL(text, encoded=True)
        scheme, host = url.scheme, url.host
    except ValueError:
        return False
    if not text.isascii() or not text.isprintable() or " " in text or "#" in text or not _SCHEME.fullmatch(scheme):
        return False
    if scheme == "https":
        return bool(HOST_NAME.fullmatch(host or "")) and "@" not in url.raw_authority
    if scheme == "http":
        return is_loopback(host or "") and "@" not in url.raw_authority
    return scheme not in _UNSAFE_SCHEMES


def _is_same(redirect_uri: str, registered: str) -> bool:
    """Simple string comparison, except for the port of a loopback address."""
    if not is_redirect_uri(redirect_uri):
        return False
    if redirect_uri == registered:
        return True
    one, other = URL(redirect_uri, encoded=True), URL(registered, encoded=True)
    return (
        one.scheme == other.scheme == "http"
        and one.host == other.host
        and is_loopback(one.host or "")
        and one.raw_path_qs == other.raw_path_qs
    )
