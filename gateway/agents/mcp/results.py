"""Results as plain documents: complete ones, questions to the user, tasks."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

Result = dict[str, Any]


def text(content: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": content}


def tool_result(*content: Mapping[str, Any], is_error: bool = False) -> Result:
    """The result of a tool in blocks of content; an error says how the model can correct its call."""
    result: Result = {"content": list(content)}
    return {**result, "isError": True} if is_error else result


def structured(document: Mapping[str, Any], *links: Mapping[str, Any], is_error: bool = False) -> Result:
    """A document as structured content, and the same as text for clients that know only that."""
    raw = msgspec.json.encode(document)
    result = tool_result(text(raw.decode()), *links, is_error=is_error)
    return {**result, "structuredContent": msgspec.Raw(raw)}


def without_copy(result: Result) -> Result:
    """The result without its structured content as text, for a client that reads structured content."""
    if "structuredContent" not in result or result.get("isError"):
        return result
    return {**result, "content": [text("see structuredContent"), *result["content"][1:]]}


def resource_link(uri: str, name: str, description: str, media_type: str, size: int | None = None) -> dict[str, Any]:
    """A link to what is too long to be put into a result; `size` in bytes."""
    link = {"type": "resource_link", "uri": uri, "name": name, "description": description, "mimeType": media_type}
    return link if size is None else {**link, "size": size}


def input_required(requests: Mapping[str, Any], state: str | None = None) -> Result:
    """Questions that have to be answered before the request can be served; the client sends it again with answers."""
    result: Result = {"resultType": "input_required", "inputRequests": dict(requests)}
    return result if state is None else {**result, "requestState": state}


def elicitation(message: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """A question to the user that is answered in a form; every member is required."""
    schema = {"type": "object", "properties": dict(properties), "required": list(properties)}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def url_elicitation(message: str, url: str, elicitation_id: str) -> dict[str, Any]:
    """A page for the user to open: what is entered there never passes through the client."""
    members = {"mode": "url", "message": message, "url": url, "elicitationId": elicitation_id}
    return {"method": "elicitation/create", "params": members}


def page(member: str, items: Iterable[Any], *, ttl_ms: int, scope: str) -> Result:
    """One page of a list, and for how long and for whom it may be kept."""
    return {member: list(items), "ttlMs": ttl_ms, "cacheScope": scope}
