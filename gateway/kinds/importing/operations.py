"""Reads the operations of a document; each includes the members of its path item that apply to it: pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from gateway.kinds.importing.model import CORRECTIONS, Node, Response, SourceBody, SourceOperation
from gateway.kinds.importing.references import Document, node_of
from gateway.kinds.members import FORM, is_json, media_type

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


def operations_of(document: Document) -> Iterator[SourceOperation]:
    """Every operation in the order of the document."""
    for path, value in document.members(document.root, "paths").items():
        item = document.resolved(value)
        for method in _METHODS:
            if isinstance(item.get(method), Mapping):
                yield _operation(document, str(path), method, item)


def is_included(operation: SourceOperation, globs: Sequence[str]) -> bool:
    """Whether one of the globs matches the path, the id or a tag; always true without globs."""
    names = (operation.path, operation.operation_id, *operation.tags)
    return not globs or any(fnmatchcase(name, glob) for glob in globs for name in names)


def _operation(document: Document, path: str, method: str, item: Node) -> SourceOperation:
    document.missing.clear()
    node = document.resolved(item[method])
    responses = {str(status): document.resolved(each) for status, each in document.members(node, "responses").items()}
    corrections = {**node_of(item.get(CORRECTIONS)), **node_of(node.get(CORRECTIONS))}
    return SourceOperation(
        method=method.upper(),
        path=path,
        operation_id=_text(node.get("operationId")),
        tags=tuple(str(tag) for tag in node.get("tags") or ()),
        summary=_text(node.get("summary")) or _text(item.get("summary")),
        description=_text(node.get("description")),
        is_deprecated=node.get("deprecated") is True,
        parameters=_parameters(document, [item.get("parameters"), node.get("parameters")]),
        body=_body(document, node.get("requestBody")),
        responses=tuple(_success(document, responses)),
        failures=tuple(_failures(document, responses)),
        servers=node.get("servers") or item.get("servers"),
        security=_security(node.get("security")),
        missing=tuple(sorted(document.missing)),
        corrections=corrections,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _parameters(document: Document, lists: Sequence[object]) -> Sequence[Node]:
    """The parameter objects; those of the operation replace those of its path with the same name and `in`."""
    found: dict[tuple[Any, Any], Node] = {}
    for listed in lists:
        for each in document.listed(listed):
            parameter = document.resolved(each)
            if isinstance(parameter.get("name"), str):
                found[parameter["name"], parameter.get("in")] = parameter
    return tuple(found.values())


def _body(document: Document, value: object) -> SourceBody | None:
    request = document.resolved(value)
    content = {str(name): document.resolved(media) for name, media in document.members(request, "content").items()}
    if not content:
        return None
    name = min(content, key=_preference)
    media = content[name]
    return SourceBody(
        _spelt(name),
        document.resolved(media.get("schema")),
        request.get("required") is True,
        node_of(media.get("encoding")),
    )


def _preference(content_type: str) -> int:
    """The rank of a media type: JSON, then other JSON types, forms, uploads, and the rest in the document's order."""
    kind = media_type(content_type)
    ranks = (kind == "application/json", is_json(kind), kind == FORM, kind == "multipart/form-data")
    return ranks.index(True) if True in ranks else len(ranks)


def _spelt(content_type: str) -> str:
    kind = media_type(content_type)
    return kind if re.fullmatch(r"[a-z0-9.+-]+/[a-z0-9.+-]+", kind) else "application/octet-stream"


def _success(document: Document, responses: Mapping[str, Node]) -> Iterator[Response]:
    """The responses with 2xx and 3xx, sorted by status; without any, the `default`."""
    statuses = sorted(status for status in responses if re.fullmatch(r"[23]([0-9][0-9]|XX)", status, re.I))
    for status in statuses or [each for each in ("default",) if each in responses]:
        response = responses[status]
        headers = frozenset(str(name).lower() for name in document.members(response, "headers"))
        content = {
            media_type(str(name)): document.resolved(media)
            for name, media in document.members(response, "content").items()
        }
        yield Response(status, content, headers)


def _failures(document: Document, responses: Mapping[str, Node]) -> Iterator[Node]:
    for status, response in responses.items():
        if status[:1] in ("4", "5") or (status == "default" and len(responses) > 1):
            for name, media in document.members(response, "content").items():
                if is_json(str(name)):
                    yield document.resolved(document.resolved(media).get("schema"))


def _security(value: object) -> Sequence[Sequence[str]] | None:
    if not isinstance(value, list):
        return None
    return tuple(tuple(map(str, node_of(each))) for each in value)
