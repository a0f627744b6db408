"""What an authorization server sends the browser back with, and where it may be sent on. Pure."""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from urllib.parse import urlencode

from yarl import URL

from gateway.errors import FieldError, UpstreamInvalidResponse
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.oauth_tokens.messages import endpoint, oauth_of
from gateway.upstream.oauth_tokens.model import TokenError, TokenErrorKind
from gateway.upstream.oauth_tokens.response import printable

#: query members as they came, repeated ones too
Query = Sequence[tuple[str, str]]


def single(query: Query, name: str) -> str | None:
    """The one value of a member; None when it is missing, empty or given twice (RFC 6749 §3.1)."""
    values = [value for key, value in query if key == name]
    return values[0] or None if len(values) == 1 else None


def read_code(
    query: Query, spec: ConnectorSpec, environment: Mapping[str, str], override: URL | None
) -> str | TokenError:
    """The code, or why there is none (RFC 6749 §4.1.2); an `iss` is compared as a whole string (RFC 9207 §2.4)."""
    issuer = _issuer(spec, environment, override)
    if any(value != issuer for key, value in query if key == "iss"):
        return _grant_error("invalid_request", "the answer comes from another authorization server (iss)")
    if error := single(query, "error"):
        return _grant_error(printable(error), printable(single(query, "error_description") or ""))
    code = single(query, "code")
    return code or _grant_error("invalid_request", "the application sent no code")


def _issuer(spec: ConnectorSpec, environment: Mapping[str, str], override: URL | None) -> str:
    """The identifier of the authorization server that was asked."""
    oauth = oauth_of(spec)
    if oauth.issuer is not None:
        return str(endpoint(oauth.issuer, environment, override))
    return str(endpoint(oauth.authorization_url, environment, override).origin())


def _grant_error(code: str, description: str) -> TokenError:
    return TokenError(code, description, TokenErrorKind.GRANT, UpstreamInvalidResponse)


def redirect_error(url: str, allowed: Sequence[str], *, is_embedded: bool) -> FieldError | None:
    """What is wrong with a redirect_url. It is one of the client's, https; embedded, any loopback (RFC 8252 §7.3)."""
    try:
        parsed = URL(url, encoded=True)
        host, port = parsed.host, parsed.port  # the port is parsed only now
    except ValueError:
        return _redirect_error("format", "is not a URL")
    if not url.isascii() or not url.isprintable() or any(each in url for each in ' \\"<>^`{|}'):
        return _redirect_error("format", "must be written in plain ASCII, everything else percent-encoded")
    if not host or not port or parsed.scheme not in ("http", "https"):
        return _redirect_error("format", "must be an absolute https URL")
    if "#" in url:
        return _redirect_error("fragment", "must have no fragment")
    if "@" in parsed.raw_authority:
        return _redirect_error("userinfo", "must have no user or password")
    if parsed.scheme == "http":
        if is_embedded and _is_loopback(host):
            return None
        return _redirect_error("scheme", "must be https; http is allowed for loopback addresses in embedded mode only")
    if url not in allowed:
        hint = f"allowed: {', '.join(allowed)}" if allowed else "the client has none"
        return _redirect_error("not_allowed", f"must be exactly one of the client's redirect URLs; {hint}")
    return None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _redirect_error(code: str, text: str) -> FieldError:
    return FieldError("/redirect_url", "redirect_url", code, f"redirect_url {text}")


def result_url(redirect_url: str, state: str | None, members: Mapping[str, str]) -> str:
    """Where the browser lands: the caller's URL as it was written, with the members and its state in the query."""
    joint = "" if redirect_url.endswith(("?", "&")) else "&" if "?" in redirect_url else "?"
    added = members if state is None else {**members, "state": state}
    return f"{redirect_url}{joint}{urlencode(added)}"
