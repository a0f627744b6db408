"""Reads the authorization response in the callback's query, and builds the URL that the browser goes to next. Pure."""

from collections.abc import Mapping
from urllib.parse import urlencode

from yarl import URL

from gateway.errors import UpstreamInvalidResponse
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.oauth_tokens.messages import endpoint
from gateway.upstream.oauth_tokens.model import TokenError, TokenErrorKind
from gateway.upstream.oauth_tokens.response import Query, printable, single


def read_code(
    query: Query, spec: ConnectorSpec, environment: Mapping[str, str], override: URL | None
) -> str | TokenError:
    """The code, or why there is none (RFC 6749 §4.1.2); an `iss` is compared as a whole string (RFC 9207 §2.4)."""
    issuers = {value for key, value in query if key == "iss"}
    if issuers and issuers != {_issuer(spec, environment, override)}:
        return _grant_error("invalid_request", "the answer comes from another authorization server (iss)")
    if error := single(query, "error"):
        return _grant_error(printable(error), printable(single(query, "error_description") or ""))
    code = single(query, "code")
    return code or _grant_error("invalid_request", "the application sent no code")


def _issuer(spec: ConnectorSpec, environment: Mapping[str, str], override: URL | None) -> str:
    """The issuer identifier of the kind's authorization server."""
    oauth = spec.oauth_endpoints
    if oauth.issuer is not None:
        return str(endpoint(oauth.issuer, environment, override))
    return str(endpoint(oauth.authorization_url, environment, override).origin())


def _grant_error(code: str, description: str) -> TokenError:
    return TokenError(code, description, TokenErrorKind.GRANT, UpstreamInvalidResponse)


def result_url(redirect_url: str, state: str | None, members: Mapping[str, str]) -> str:
    """Where the browser lands: the caller's URL as it was written, with the members and its state in the query."""
    joint = "" if redirect_url.endswith(("?", "&")) else "&" if "?" in redirect_url else "?"
    added = members if state is None else {**members, "state": state}
    return f"{redirect_url}{joint}{urlencode(added)}"
