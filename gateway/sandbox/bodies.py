"""Parses request bodies: JSON, forms with brackets, multipart, CSV."""

import csv
import io
import re
from base64 import b64encode
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from gateway.kinds.members import CSV, FORM, MULTIPART, is_json, media_type
from gateway.sandbox.calls import Refusal

#: the member for the rows of a CSV body
ROWS = "rows"


def parsed_body(body: bytes, content_type: str) -> dict[str, Any]:
    """The members of a JSON object, form or multipart body, or the rows of CSV; empty for others. Raises Refusal."""
    kind = media_type(content_type)
    if not body.strip():
        return {}
    if kind == FORM:
        return _form(body.decode(errors="replace"))
    if kind in MULTIPART:
        return _parts(body, content_type)
    if kind == CSV:
        return {ROWS: list(csv.DictReader(io.StringIO(body.decode(errors="replace"), newline="")))}
    if kind and not is_json(kind):
        return {}
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(400, message="the body is not JSON") from error
    return document if isinstance(document, dict) else {}


def _form(text: str) -> dict[str, Any]:
    """The members of a form; members with brackets are added a second time as nested objects."""
    members: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        members[name] = value
        path = re.findall(r"[^\[\]]+|\[\]", name)
        if len(path) > 1:
            _put(members, [part.strip("[]") for part in path], value)
    return members


def _put(members: dict[str, Any], path: list[str], value: str) -> None:
    """Set a nested member of a form; items of lists get their positions as names."""
    *outer, last = path
    for name in outer:
        inner = members.setdefault(name or str(len(members)), {})
        if not isinstance(inner, dict):
            return
        members = inner
    members[last or str(len(members))] = value


def _parts(body: bytes, content_type: str) -> dict[str, Any]:
    """The parts of a multipart body by name: a JSON part adds its members, a file has its name and base64 content."""
    message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    members: dict[str, Any] = {}
    for part in message.iter_parts():
        payload = part.get_payload(decode=True)
        content = payload if isinstance(payload, bytes) else b""
        name = part.get_param("name", header="content-disposition")
        if name is None and is_json(part.get_content_type()):
            members |= msgspec.json.decode(content)
        elif name is None or part.get_filename() is not None:
            file = {"filename": part.get_filename(), "content_type": part.get_content_type()}
            members[str(name or "file")] = {**file, "content": b64encode(content).decode()}
        else:
            members[str(name)] = content.decode(errors="replace")
    return members
