"""Params into the exact HTTP request of the application: pure, so that a dry run is the real thing."""

import re
from collections.abc import AsyncIterable, Mapping
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
    InternalError,
    InvalidCredentials,
    InvalidParams,
    UpstreamInvalidResponse,
)
from gateway.kinds.catalog import Operation
from gateway.kinds.hosts import host_matches
from gateway.kinds.spec import ConnectorSpec
from gateway.kinds.suggestions import did_you_mean
from gateway.upstream.auth import QUERY_PREFIX
from gateway.upstream.bodies import body_of, query_of, text_of, with_texts

_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class UpstreamRequest(msgspec.Struct, frozen=True):
    """One HTTP request to the application, credentials not yet on it."""

    method: str
    url: URL
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes | None = None
    effect: Effect = Effect.READ
    #: the operation's name in the request log: `tickets.list`, `oauth.token`
    operation: str | None = None
    #: in place of `body`: what is read once while it is sent, and its bytes
    stream: AsyncIterable[bytes] | None = None
    size: int = 0


def build(operation: Operation, params: Mapping[str, Any], address: str, effect: Effect) -> UpstreamRequest:
    """Place each (validated) param where the spec says: path, query, body or header."""
    path, in_query, header_lines = operation.path, [], {}
    params = with_texts(operation, params)
    for placement in operation.placements:
        if placement.name not in params:
            continue
        value = params[placement.name]
        if placement.where == "query":
            in_query.append(placement)
        elif placement.where == "path":
            path = path.replace(f"{{{placement.wire}}}", _segment(operation, placement.wire, value))
        elif placement.where == "header":
            header_lines[placement.wire] = value
    headers = dict(operation.constant_headers)
    if header_lines:
        headers |= _header_lines(operation, header_lines)
    body = None
    if operation.has_body:
        body, headers["Content-Type"] = body_of(operation, params)
    url = _url(address + path, query_of(operation.action.constant_query, in_query, params))
    return UpstreamRequest(operation.method, url, headers, body, effect, str(operation))


def authenticated(
    request: UpstreamRequest, credentials: Mapping[str, str]
) -> tuple[UpstreamRequest, Mapping[str, str]]:
    """The request with the credentials that belong in its query, and those that are headers."""
    if not any(name.startswith(QUERY_PREFIX) for name in credentials):
        return request, credentials
    members = {name.removeprefix(QUERY_PREFIX): value for name, value in credentials.items() if name[0] == QUERY_PREFIX}
    separator = "&" if request.url.raw_query_string else "?"
    url = URL(f"{request.url}{separator}{urlencode(members, safe='*', quote_via=quote)}", encoded=True)
    headers = {name: value for name, value in credentials.items() if name[0] != QUERY_PREFIX}
    return replace(request, url=url), headers


def effect_of(operation: Operation, params: Mapping[str, Any]) -> Effect:
    """The effect class of this very call: a ticket update with a comment is a write."""
    value: Any = params if operation.action.write_if else None
    for member in operation.action.write_if or ():
        value = value.get(member) if isinstance(value, Mapping) else None
    return Effect.WRITE if value is not None else operation.action.effect


def base_address(
    spec: ConnectorSpec, environment: Mapping[str, str], override: URL | None = None, server: str | None = None
) -> str:
    """The kind's server, or another of its, with variables filled in, moved to the operator's override if there is one.

    Raises ConnectorNotReady while a variable is missing.
    """
    try:
        address = URL((server or spec.server_for(environment)).format_map(environment), encoded=True)
    except KeyError as missing:
        raise ConnectorNotReady(f"the connector has no {missing.args[0]} yet; it comes with the first token") from None
    return str(relocated(address, override)).rstrip("/")


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
        elif variable.type == "dns_label" and not _DNS_LABEL.fullmatch(value):
            text = (
                f"{name} must be one DNS label: lower-case letters, digits and hyphens, for example {variable.example}"
            )
            faults.append(_variable_error(name, "pattern", text))
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
    """The origin as it was parsed, of one of the kind's hosts or of the override; None where it is neither.

    The text itself is not kept: another parser may read it otherwise.
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


def upstream_segment(operation: Operation, value: Any) -> str:
    """An id that the application gave, as one path segment; raises UpstreamInvalidResponse for what cannot be one."""
    if isinstance(value, str | int) and not isinstance(value, bool) and _is_segment(str(value)):
        return quote(str(value), safe="", errors="replace")
    raise UpstreamInvalidResponse(f"{operation}: the application returned an invalid id for the operation it started")


def _is_segment(text: str) -> bool:
    """Whether a text stays one segment of a path once it is quoted."""
    return text not in ("", ".", "..") and not any(ord(each) < 0x20 or ord(each) == 0x7F for each in text)


def _segment(operation: Operation, name: str, value: Any) -> str:
    """A value as one path segment; what could climb out of it is refused."""
    text = text_of(value)
    if not _is_segment(text):
        message = f"{operation}: {name} is {text!r}; it must be one plain path segment"
        raise InvalidParams(faults=[FieldError(f"/params/{name}", name, "pattern", message)])
    return quote(text, safe="")


def _header_lines(operation: Operation, placed: Mapping[str, Any]) -> dict[str, str]:
    """Params that travel as headers; the range of a file that lies elsewhere is for the request that fetches it."""
    if operation.action.download is not None and operation.action.download.url is not None:
        return {}
    lines = {header: text_of(value) for header, value in placed.items()}
    for name, header in ((placement.name, placement.wire) for placement in operation.placements):
        text = lines.get(header, "")
        if not (text.isascii() and text.isprintable()):
            message = f"{operation}: {name} is {text!r}; a header holds printable ASCII only"
            raise InvalidParams(faults=[FieldError(f"/params/{name}", name, "pattern", message)])
    return lines


def _url(address: str, query: str) -> URL:
    """The URL, encoded by us alone; the host is proven to be the address's own."""
    url = URL(f"{address}?{query}" if query else address, encoded=True)
    if url.raw_authority != address.split("/", 3)[2]:
        raise InternalError
    return url
