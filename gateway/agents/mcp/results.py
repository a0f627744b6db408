"""Builds results: complete ones, and questions to the user."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

Result = dict[str, Any]


def text(content: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": content}


def tool_result(*content: Mapping[str, Any], is_error: bool = False) -> Result:
    """The result of a tool, as content blocks; with `is_error` it tells the model how to correct its call."""
    result: Result = {"content": list(content)}
    return {**result, "isError": True} if is_error else result


def structured(document: Mapping[str, Any], *links: Mapping[str, Any], is_error: bool = False) -> Result:
    """A document as structured content, and as text for clients that read only text."""
    raw = msgspec.json.encode(document)
    result = tool_result(text(raw.decode()), *links, is_error=is_error)
    return {**result, "structuredContent": msgspec.Raw(raw)}


def without_copy(result: Result) -> Result:
    """The result without the text copy of its structured content, for clients that read structured content."""
    if "structuredContent" not in result or result.get("isError"):
        return result
    return {**result, "content": [text("see structuredContent"), *result["content"][1:]]}


def resource_link(uri: str, name: str, description: str, media_type: str, size: int | None = None) -> dict[str, Any]:
    """A link to content that is too long for a result; `size` in bytes."""
    link = {"type": "resource_link", "uri": uri, "name": name, "description": description, "mimeType": media_type}
    return link if size is None else {**link, "size": size}


def input_required(requests: Mapping[str, Any], state: str | None = None) -> Result:
    """Questions to the user; the client repeats the request with `state` and the answers."""
    result: Result = {"resultType": "input_required", "inputRequests": dict(requests)}
    return result if state is None else {**result, "requestState": state}


def elicitation(message: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """A question to the user, as a form whose members are all required."""
    schema = {"type": "object", "properties": dict(properties), "required": list(properties)}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def url_elicitation(message: str, url: str, elicitation_id: str) -> dict[str, Any]:
    """A page for the user to open; the client does not see the data that the user enters there."""
    members = {"mode": "url", "message": message, "url": url, "elicitationId": elicitation_id}
    return {"method": "elicitation/create", "params": members}


def page(member: str, items: Iterable[Any], *, ttl_ms: int, scope: str) -> Result:
    """A complete list, and for how long and for whom clients may cache it."""
    return {member: list(items), "ttlMs": ttl_ms, "cacheScope": scope}
