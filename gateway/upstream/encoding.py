"""Encodes params for the application: in paths, queries and headers, and in bodies of every type. Pure."""

import csv
import hashlib
import io
import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
from yarl import URL

from gateway.errors import FieldError, InternalError, InvalidParams, UpstreamInvalidResponse
from gateway.kinds.catalog import Operation
from gateway.kinds.graphql_documents import with_selection
from gateway.kinds.members import CSV, FORM, MULTIPART, is_json
from gateway.kinds.placements import Placement, put
from gateway.kinds.requests import ParamStyle

_ENCODER = msgspec.json.Encoder()
#: a tuple, because `isinstance` makes a union of types anew at each call
_CONTAINERS: Final = (dict, list)
#: a URN within a text of Rest.li, whose colons are no part of its form
_URN: Final = re.compile(r"(urn:[^,()]*)")
_DELIMITERS: Final = {ParamStyle.FORM: ",", ParamStyle.SPACE_DELIMITED: " ", ParamStyle.PIPE_DELIMITED: "|"}
#: styles that name the items of a list: `a[]`, or `a[0]` if an item is an object or a list, or for `indexed`
_BRACKETS: Final = (None, ParamStyle.DEEP_OBJECT, ParamStyle.INDEXED)


def with_texts(operation: Operation, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The params with the texts that are sent in place of values, such as `refs/heads/main`."""
    texts = {name: text for name, text in operation.texts.items() if name in params}
    if not texts:
        return params
    words = {name: text_of(value) for name, value in params.items()}
    return {**params, **{name: text.format_map(words) for name, text in texts.items()}}


def upstream_segment(operation: Operation, value: Any) -> str:
    """An id that the application gave, as one path segment; raises UpstreamInvalidResponse for what cannot be one."""
    if isinstance(value, str | int) and not isinstance(value, bool) and _is_segment(str(value)):
        return quote(str(value), safe="", errors="replace")
    raise UpstreamInvalidResponse(f"{operation}: the application returned an invalid id for the operation it started")


def _is_segment(text: str) -> bool:
    """Whether a text stays one segment of a path once it is quoted."""
    return text not in ("", ".", "..") and not any(ord(each) < 0x20 or ord(each) == 0x7F for each in text)


def segment_of(operation: Operation, name: str, value: Any) -> str:
    """A value as one path segment; raises an error for values that would leave the segment."""
    text = text_of(value)
    if not _is_segment(text):
        message = f"{operation}: {name} is {text!r}; it must be one plain path segment"
        raise InvalidParams(faults=[FieldError(f"/params/{name}", name, "pattern", message)])
    return quote(text, safe="")


def header_lines(operation: Operation, placed: Mapping[str, Any]) -> dict[str, str]:
    """The params sent as headers; none if the file has a URL of its own: the range goes to that URL."""
    if operation.action.download is not None and operation.action.download.url is not None:
        return {}
    lines = {header: text_of(value) for header, value in placed.items()}
    for name, header in ((placement.name, placement.wire) for placement in operation.placements):
        text = lines.get(header, "")
        if not (text.isascii() and text.isprintable()):
            message = f"{operation}: {name} is {text!r}; a header may contain only printable ASCII"
            raise InvalidParams(faults=[FieldError(f"/params/{name}", name, "pattern", message)])
    return lines


def url_of(address: str, query: str) -> URL:
    """The URL, encoded so that yarl does not encode it again; raises InternalError if its host is not the address's."""
    url = URL(f"{address}?{query}" if query else address, encoded=True)
    if url.raw_authority != address.split("/", 3)[2]:
        raise InternalError
    return url


def body_of(operation: Operation, params: Mapping[str, Any]) -> tuple[bytes, str]:
    """The body of a call, and its Content-Type; raises InvalidParams for a file that is not base64."""
    action, content_type = operation.action, operation.content_type
    if action.request_body is not None:
        return _whole_body(operation, params.get(action.request_body)), content_type
    placed = [each for each in operation.placements if each.where == "body" and each.name in params]
    constant = _constants(operation, params)
    if action.graphql is not None:
        document = {"query": _document(operation, params), "variables": _nested({}, placed, params)}
        return _ENCODER.encode({**document, **constant}), content_type
    if operation.media_type == FORM:
        return form_of(constant, placed, params), content_type
    members = _nested(constant, placed, params)
    if operation.media_type in MULTIPART:
        return _multipart(operation, _with_files(operation, members, params))
    return _ENCODER.encode(members), content_type


def arguments_of(operation: Operation, params: Mapping[str, Any]) -> Any:
    """The arguments of a tool: the params of the body, or the one that is the whole body."""
    if operation.action.request_body is not None:
        return params.get(operation.action.request_body, {})
    return _nested({}, [each for each in operation.placements if each.name in params], params)


def _constants(operation: Operation, params: Mapping[str, Any]) -> dict[str, Any]:
    """The constant members of a body; `{name}` becomes the value of that param, and is left out without it."""
    return _filled(operation, operation.action.constant_body, params)


def _filled(operation: Operation, members: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    constant: dict[str, Any] = {}
    for member, value in members.items():
        name = operation.action.param_in(value)
        if isinstance(value, dict):
            constant[member] = _filled(operation, value, params)
        elif isinstance(value, list):
            constant[member] = [_filled(operation, each, params) if isinstance(each, dict) else each for each in value]
        elif name is None or name in params:
            constant[member] = value if name is None else params[name]
    return constant


def form_of(constant: Mapping[str, Any], placed: Sequence[Placement], params: Mapping[str, Any]) -> bytes:
    """A form: nested members are `a[b]`, lists as their param's `style` says."""
    pairs = [pair for name, value in constant.items() for pair in _pairs(name, value)]
    pairs += [pair for placement in placed for pair in pairs_of(placement, params[placement.name])]
    return urlencode(pairs).encode()


def query_of(constant: Mapping[str, Any], placed: Sequence[Placement], params: Mapping[str, Any]) -> str:
    """A query, encoded; members that are null are left out."""
    members = []
    for name, value in constant.items():
        members += [
            _member(name, each) for each in (value if isinstance(value, tuple) else (value,)) if each is not None
        ]
    for placement in placed:
        value = params[placement.name]
        if placement.style is ParamStyle.RESTLI and value is not None:
            members.append(f"{_quoted_name(placement.wire)}={restli_text(value)}")
        elif isinstance(value, _CONTAINERS):
            members += [_member(name, text) for name, text in query_pairs(placement, value)]
        elif value is not None:
            members.append(_member(placement.wire, text_of(value)))
    return "&".join(members)


def _member(name: str, value: str) -> str:
    """A member of a query, percent-encoded; most values are numbers and words, which need no encoding."""
    return f"{_quoted_name(name)}={value if value.isascii() and value.isalnum() else quote(value, safe='')}"


@lru_cache(maxsize=4096)
def _quoted_name(name: str) -> str:
    """The name of a query's member, percent-encoded; nearly all names come from specs, so they repeat."""
    return quote(name, safe="")


def query_pairs(placement: Placement, value: Any) -> Iterator[tuple[str, str]]:
    """The query members for a list or an object: lists are repeated, objects are JSON, unless `style` is set."""
    if placement.style is None:
        placement = Placement(
            name=placement.name,
            where=placement.where,
            wire=placement.wire,
            style=ParamStyle.FORM,
            explode=placement.explode,
        )
    return pairs_of(placement, value)


def pairs_of(placement: Placement, value: Any) -> Iterator[tuple[str, str]]:
    """The form members for a value."""
    name, style = placement.wire, placement.style
    if style in _BRACKETS:
        yield from _pairs(name, value, is_indexed=style is ParamStyle.INDEXED)
    elif isinstance(value, list) and (style is not ParamStyle.FORM or not placement.explode):
        yield name, _DELIMITERS[style].join(text_of(item) for item in value)
    elif isinstance(value, list):
        for item in value:
            yield name, text_of(item)
    else:
        yield name, "" if value is None else text_of(value)


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


def restli_text(value: Any) -> str:
    """A value as Rest.li 2.0 writes it in a query, percent-encoded; a text has its form already, but for its URNs."""
    if not isinstance(value, str):
        return _restli(value)
    parts = _URN.split(value)
    return "".join(quote(part, safe="" if number % 2 else "(),:%") for number, part in enumerate(parts))


def _restli(value: Any) -> str:
    if isinstance(value, list):
        return f"List({','.join(map(_restli, value))})"
    if isinstance(value, dict):
        members = (f"{quote(name, safe='')}:{_restli(inner)}" for name, inner in value.items())
        return f"({','.join(members)})"
    return quote(text_of(value), safe="")


def _pairs(name: str, value: Any, *, is_indexed: bool = False) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for member, inner in value.items():
                yield from _pairs(f"{name}[{member}]", inner, is_indexed=is_indexed)
        case list():
            is_plain = not is_indexed and not any(isinstance(item, dict | list) for item in value)
            if not value:
                yield name, ""  # an empty text clears the application's list; without the param the list would stay
            for index, item in enumerate(value):
                yield from _pairs(f"{name}[]" if is_plain else f"{name}[{index}]", item, is_indexed=is_indexed)
        case None:
            yield name, ""
        case _:
            yield name, text_of(value)


def _document(operation: Operation, params: Mapping[str, Any]) -> str:
    document = operation.action.graphql or ""
    for placement in operation.placements:
        if placement.where == "fragment" and params.get(placement.name):
            document = with_selection(document, placement.wire, params[placement.name])
    return document


def _nested(constant: Mapping[str, Any], placed: Sequence[Placement], params: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a JSON body: `as: a.b` puts a param into the object `a`, `as: a.0` into the list `a`."""
    members: dict[str, Any] = _copied(constant)
    for placement in placed:
        put(members, placement.wire.split("."), params[placement.name])
    return members


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return [_copied(each) for each in value]
    return {name: _copied(inner) for name, inner in value.items()} if isinstance(value, Mapping) else value


def _whole_body(operation: Operation, value: Any) -> bytes:
    """A param as the whole body: JSON if the type says so, records as CSV, else text, or bytes in base64."""
    if is_json(operation.content_type):
        return _ENCODER.encode(value)
    if operation.media_type == CSV and isinstance(value, list):
        return _csv(value)
    name = operation.action.request_body or ""
    if operation.action.params[name].get("contentEncoding") == "base64":
        return _decoded(operation, name, value)
    return text_of(value).encode() if value is not None else b""


def _csv(records: Sequence[Mapping[str, Any]]) -> bytes:
    """Records as CSV (RFC 4180): the first line names all members; a missing member is an empty field."""
    names = list(dict.fromkeys(name for record in records for name in record))
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(names)
    for record in records:
        writer.writerow(["" if record.get(name) is None else text_of(record[name]) for name in names])
    return written.getvalue().encode()


def _with_files(operation: Operation, members: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a multipart body; a text in base64 becomes a file of the type that its schema names."""
    found, types = dict(members), set[str]()
    for placement in operation.placements:
        schema, value = operation.action.params[placement.name], members.get(placement.wire)
        if schema.get("contentEncoding") == "base64" and isinstance(value, str):
            type_ = schema.get("contentMediaType")
            name = operation.action.param_in(type_)
            types |= {name} if name else set()
            found[placement.wire] = {"content": value, "content_type": params.get(name) if name else type_}
    return {name: value for name, value in found.items() if name not in types}


def _multipart(operation: Operation, members: Mapping[str, Any]) -> tuple[bytes, str]:
    """Parts (RFC 2046 §5.1): a file is an object with `content` in base64, `filename` and `content_type`.

    `multipart/related` (RFC 2387) has the other members in one JSON part before the files.
    """
    files = {name: value for name, value in members.items() if isinstance(value, dict) and "content" in value}
    fields = {name: value for name, value in members.items() if name not in files}
    kind = operation.media_type
    parts: list[tuple[list[str], bytes]] = []
    if kind == "multipart/related":
        parts.append((["Content-Type: application/json; charset=UTF-8"], _ENCODER.encode(fields)))
    else:
        for name, value in fields.items():
            for each in value if isinstance(value, list) else (value,):
                parts.append(([_disposition(name)], b"" if each is None else text_of(each).encode()))
    for name, file in files.items():
        lines = [f"Content-Type: {header_text(file.get('content_type') or 'application/octet-stream')}"]
        if kind != "multipart/related":
            lines.insert(0, f'{_disposition(name)}; filename="{_quoted(file.get("filename") or name)}"')
        parts.append((lines, _decoded(operation, name, file["content"])))
    boundary = hashlib.sha256(b"".join(content for _, content in parts)).hexdigest()[:32]
    written = b"".join(
        f"--{boundary}\r\n".encode() + "\r\n".join(lines).encode() + b"\r\n\r\n" + content + b"\r\n"
        for lines, content in parts
    )
    return written + f"--{boundary}--\r\n".encode(), f"{kind}; boundary={boundary}"


def _disposition(name: str) -> str:
    return f'Content-Disposition: form-data; name="{_quoted(name)}"'


def _quoted(text: Any) -> str:
    """A name in quotes as browsers write it (WHATWG HTML, multipart/form-data)."""
    return str(text).replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def header_text(text: Any) -> str:
    """The printable ASCII characters of a text, for a header."""
    return "".join(each for each in str(text) if each.isprintable() and each.isascii())


def _decoded(operation: Operation, name: str, value: Any) -> bytes:
    try:
        return b64decode(str(value), validate=True)
    except (Error, ValueError) as error:
        message = f"{operation}: the content of {name} is not base64; encode the bytes of the file"
        raise InvalidParams(faults=[FieldError(f"/params/{name}", name, "contentEncoding", message)]) from error
