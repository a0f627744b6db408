"""Params into the exact HTTP request of the application: pure, so that a dry run is the real thing."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import replace
from yarl import URL

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
from gateway.kinds.spec import FORM, ConnectorSpec, Effect
from gateway.kinds.suggestions import did_you_mean
from gateway.upstream.auth import QUERY_PREFIX

_ENCODER = msgspec.json.Encoder()
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class UpstreamRequest(msgspec.Struct, frozen=True):
    """One HTTP request to the application, credentials not yet on it."""

    method: str
    url: URL
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes | None = None
    effect: Effect = Effect.READ


def build(operation: Operation, params: Mapping[str, Any], address: str, effect: Effect) -> UpstreamRequest:
    """Place each (validated) param where the spec says: path, query, body or header."""
    constant = dict(operation.action.constant_query)
    placed: dict[str, dict[str, Any]] = {"path": {}, "query": constant, "body": {}, "header": {}}
    for placement in operation.placements:
        if placement.name in params:
            placed[placement.where][placement.wire] = params[placement.name]
    path = operation.path
    for name, value in placed["path"].items():
        path = path.replace(f"{{{name}}}", _segment(operation, name, value))
    headers = {"Accept": "application/json", **operation.spec.headers}
    if placed["header"]:
        headers |= _header_lines(operation, placed["header"])
    body = None
    if operation.method not in ("GET", "DELETE"):
        body = encoded_body(operation.spec.content_type, placed["body"])
        headers["Content-Type"] = operation.spec.content_type
    return UpstreamRequest(operation.method, _url(address + path, placed["query"]), headers, body, effect)


def authenticated(
    request: UpstreamRequest, credentials: Mapping[str, str]
) -> tuple[UpstreamRequest, Mapping[str, str]]:
    """The request with the credentials that belong in its query, and those that are headers."""
    if not any(name.startswith(QUERY_PREFIX) for name in credentials):
        return request, credentials
    members = {name.removeprefix(QUERY_PREFIX): value for name, value in credentials.items() if name[0] == QUERY_PREFIX}
    separator = "&" if request.url.raw_query_string else "?"
    url = URL(f"{request.url}{separator}{urlencode(members, quote_via=quote)}", encoded=True)
    headers = {name: value for name, value in credentials.items() if name[0] != QUERY_PREFIX}
    return replace(request, url=url), headers


def effect_of(operation: Operation, params: Mapping[str, Any]) -> Effect:
    """The effect class of this very call: a ticket update with a comment is a write."""
    value: Any = params if operation.action.write_if else None
    for member in operation.action.write_if or ():
        value = value.get(member) if isinstance(value, Mapping) else None
    return Effect.WRITE if value is not None else operation.action.effect


def base_address(spec: ConnectorSpec, environment: Mapping[str, str], override: URL | None = None) -> str:
    """The kind's address with its variables filled in, moved to the operator's override where there is one."""
    try:
        address = URL(spec.server.format_map(environment), encoded=True)
    except KeyError as missing:
        raise ConnectorNotReady(f"the connector has no {missing.args[0]} yet; it comes with the first token") from None
    return str(relocated(address, override)).rstrip("/")


def relocated(url: URL, override: URL | None) -> URL:
    """The URL with scheme, host and port of the operator's override; path and query are kept."""
    if override is None:
        return url
    return URL(f"{override.origin()}{url.raw_path_qs}", encoded=True)


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
    raise UpstreamInvalidResponse(f"{operation}: the application named what it started by what is no id")


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


def _url(address: str, query: Mapping[str, Any]) -> URL:
    """The URL, encoded by us alone; the host is proven to be the address's own."""
    members = [
        f"{quote(name, safe='')}={quote(text_of(each), safe='')}"
        for name, value in query.items()
        for each in (value if isinstance(value, tuple) else (value,))
        if each is not None
    ]
    url = URL(f"{address}?{'&'.join(members)}" if members else address, encoded=True)
    if url.raw_authority != address.split("/", 3)[2]:
        raise InternalError
    return url


def encoded_body(content_type: str, members: Mapping[str, Any]) -> bytes:
    """The body; in a form nested members are `a[b]`, items of a list `a[]`, and of a list of objects `a[0][b]`."""
    if is_form(content_type):
        return urlencode([pair for name, value in members.items() for pair in _pairs(name, value)]).encode()
    return _ENCODER.encode(members)


def is_form(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == FORM


def text_of(value: Any) -> str:
    """A value as applications read it in a path, a query or a form."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case list():
            return ",".join(text_of(item) for item in value)
        case dict():
            return _ENCODER.encode(value).decode()
        case _:
            return str(value)


def _pairs(name: str, value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for member, inner in value.items():
                yield from _pairs(f"{name}[{member}]", inner)
        case list():
            is_flat = not any(isinstance(item, dict | list) for item in value)
            for index, item in enumerate(value):
                yield from _pairs(f"{name}[]" if is_flat else f"{name}[{index}]", item)
        case None:
            yield name, ""
        case _:
            yield name, text_of(value)
