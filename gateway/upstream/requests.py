"""A request to the application, and the address that it goes to. Pure."""

import re
from collections.abc import AsyncIterable, Collection, Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import replace
from yarl import URL

from gateway.contract.kinds import Effect
from gateway.errors import (
    MAX_FAULTS,
    ConnectorNotReady,
    FieldError,
    InvalidCredentials,
)
from gateway.foundation.hosts import host_matches
from gateway.kinds.spec import ConnectorSpec
from gateway.kinds.suggestions import did_you_mean
from gateway.upstream.auth import QUERY_PREFIX
from gateway.upstream.redaction import Secrets, secrets_in_body

_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
#: one segment of a path, which is no relative one
_TEXT = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._~-]{1,200}")


class UpstreamRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request to the application, credentials not yet on it."""

    method: str
    url: URL
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes | None = None
    effect: Effect = Effect.READ
    #: the operation's name in the request log: `tickets.list`, `oauth.token`
    operation: str | None = None
    #: in place of `body`: a body that is read once, while it is sent; and its size in bytes
    stream: AsyncIterable[bytes] | None = None
    size: int = 0
    #: the method of a request to an MCP server; the response may be a stream of events, whose JSON-RPC response is then
    #: the body
    mcp_method: str | None = None
    #: the id of that request as it is sent; None for any other request
    message_id: int | None = None
    #: whether it is a mutation of GraphQL, whose response may have errors of what was executed
    is_mutation: bool = False
    #: whether the response has a task of an MCP server, whose outcome is then the body
    reads_outcome: bool = False
    #: the path that the request log has, if the URL is a secret
    logged_path: str | None = None
    #: secrets of the URL and the body, which its response may echo
    secrets: tuple[str, ...] = ()

    def secrets_beside(self, credentials: Mapping[str, str]) -> Secrets:
        """The secrets of the request, and of the headers that authenticate it."""
        own = (value for name, value in self.headers.items() if name.lower() == "authorization")
        found = Secrets.of_headers((*credentials.values(), *own))
        body = () if self.body is None or self.effect is Effect.READ else secrets_in_body(self.body)
        return found | Secrets((*self.secrets, *body))


def with_query_credentials(
    request: UpstreamRequest, credentials: Mapping[str, str]
) -> tuple[UpstreamRequest, Mapping[str, str]]:
    """The request with the credentials that belong in its query, and those that are headers."""
    members = {name.removeprefix(QUERY_PREFIX): value for name, value in credentials.items() if name[0] == QUERY_PREFIX}
    separator = "&" if request.url.raw_query_string else "?"
    url = URL(f"{request.url}{separator}{urlencode(members, safe='*', quote_via=quote)}", encoded=True)
    headers = {name: value for name, value in credentials.items() if name[0] != QUERY_PREFIX}
    return replace(request, url=url, secrets=(*request.secrets, *members.values())), headers


def base_address(
    spec: ConnectorSpec, environment: Mapping[str, str], override: URL | None = None, server: str | None = None
) -> str:
    """The kind's server, or `server`, with variables filled in, moved to the operator's override if there is one.

    Raises ConnectorNotReady while a variable is missing.
    """
    address = URL(_filled(server or spec.server_for(environment), environment), encoded=True)
    return str(relocated(address, override)).rstrip("/")


def with_variables(
    request: UpstreamRequest, headers: Collection[str], query: Mapping[str, str], environment: Mapping[str, str]
) -> UpstreamRequest:
    """The request with the connector's variables in the headers of these names, and in the texts of these members of
    the query, unless the caller has given other values.

    Raises ConnectorNotReady while a variable is missing.
    """
    filled = {name: _filled(request.headers[name], environment) for name in headers}
    url = request.url
    if query:
        members = url.raw_query_string.split("&")
        sent = {f"{quote(name, safe='')}={quote(text, safe='')}": (name, text) for name, text in query.items()}
        changed = "&".join(_member(*sent[member], environment) if member in sent else member for member in members)
        url = URL(f"{url.with_query(None)}?{changed}", encoded=True)
    return replace(request, url=url, headers={**request.headers, **filled})


def _member(name: str, text: str, environment: Mapping[str, str]) -> str:
    return f"{quote(name, safe='')}={quote(_filled(text, environment), safe='*')}"


def _filled(text: str, environment: Mapping[str, str]) -> str:
    try:
        return re.sub(r"{(\w+)}", lambda found: environment[found[1]], text)
    except KeyError as missing:
        raise ConnectorNotReady(
            f"the connector has no {missing.args[0]} yet; give it, or wait for the first token response, if that has it"
        ) from None


def relocated(url: URL, override: URL | None) -> URL:
    """The URL at the operator's override: scheme, host and port are replaced, a path comes before the URL's own."""
    if override is None:
        return url
    return URL(f"{override.origin()}{override.raw_path.rstrip('/')}{url.raw_path_qs}", encoded=True)


def checked_environment(
    spec: ConnectorSpec, environment: Mapping[str, Any], override: URL | None = None
) -> dict[str, str]:
    """The kind's variables, known and well typed, with defaults; raises InvalidCredentials with every fault."""
    unknown = (name for name in environment if name not in spec.environment)
    faults = [
        _variable_error(name, "unknown", f"environment has no variable {name}; {did_you_mean(name, spec.environment)}")
        for name in islice(unknown, MAX_FAULTS)
    ]
    for name, variable in spec.environment.items():
        value = environment.get(name)
        if value is None:
            if variable.required and variable.default is None:
                faults.append(_variable_error(name, "required", f"{name} is missing: {variable.description}"))
        elif not isinstance(value, str):
            faults.append(_variable_error(name, "type", f"{name} must be a string"))
        elif variable.enum is not None and value not in variable.enum:
            text = f"{name} must be one of {', '.join(variable.enum)}"
            faults.append(_variable_error(name, "enum", text))
        elif variable.type == "dns_label" and not _DNS_LABEL.fullmatch(value):
            text = (
                f"{name} must be one DNS label: lower-case letters, digits and hyphens, for example {variable.example}"
            )
            faults.append(_variable_error(name, "pattern", text))
        elif variable.type == "text" and not _TEXT.fullmatch(value):
            faults.append(_variable_error(name, "pattern", f"{name} must be letters, digits, dots, hyphens, _ or ~"))
        elif variable.type == "host" and not host_matches(value, spec.hosts):
            faults.append(_variable_error(name, "pattern", f"{name} must be a host name: {' or '.join(spec.hosts)}"))
        elif variable.type == "origin" and _origin_of(spec, value, override) is None:
            text = f"{name} must be an https origin on {' or '.join(spec.hosts)}"
            faults.append(_variable_error(name, "pattern", text))
    if faults:
        raise InvalidCredentials(faults=faults)
    return {
        name: _origin_of(spec, value, override) or value if variable.type == "origin" else value
        for name, variable in spec.environment.items()
        if (value := environment.get(name) or variable.default) is not None
    }


def _origin_of(spec: ConnectorSpec, value: str, override: URL | None) -> str | None:
    """The origin as it was parsed, of one of the kind's hosts or of the override; None if it is neither.

    The text itself is not kept, because another parser may read it differently.
    """
    try:
        url = URL(value)
        is_bare_origin = url.path in ("", "/") and not url.query_string and not url.fragment and not url.user
        if not is_bare_origin or not url.host:
            return None
        origin = url.origin()
    except ValueError:
        return None
    if override is not None and origin == override.origin():
        return str(origin)
    is_default = origin.scheme == "https" and origin.port == 443
    return str(origin) if is_default and host_matches(origin.host or "", spec.hosts) else None


def _variable_error(name: str, code: str, message: str) -> FieldError:
    return FieldError(pointer=f"/environment/{name}", field=name, code=code, message=message)
