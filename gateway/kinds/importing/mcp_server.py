"""Writes the tools of an MCP server as an OpenAPI document, so that the import maps them as it maps operations. Pure.

What a server says of itself is a stranger's text. Its annotations are hints: every tool is a write until an
administrator says that it only reads.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from gateway.foundation.mcp import TASKS, has_handshake
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.importing.authentication import oauth_method
from gateway.kinds.importing.connector import kind_name
from gateway.kinds.importing.model import CORRECTIONS, Confidence, Finding, ImportFailed, Node
from gateway.kinds.importing.names import allowed, entity_name
from gateway.kinds.importing.output_schemas import output_schema
from gateway.kinds.importing.references import MAX_LEVELS, Document, is_too_deep, node_of
from gateway.kinds.importing.words import identifier, phrase, plain

#: the member of a document that says that it describes an MCP server: its protocol version
MARK = "mcp"
#: the end of a tool's prefix, which names its entity
_SEPARATOR = re.compile(r"[./]|__")
#: the states of a task, and the bounds of what a server may ask for: at most so many seconds between two requests
_STATES: Mapping[str, Any] = {
    "path": "result.status",
    "running": ["working"],
    "succeeded": ["completed"],
    "failed": ["failed"],
    "canceled": ["cancelled"],
    "waiting": ["input_required"],
    "message": "result.statusMessage",
    "interval": 30,
}
#: maximum characters of a tool's name
_MAX_NAME = 128
#: names of actions that mean something else in a spec
_RESERVED = frozenset({"list", "download", "get", "api_search", SEARCH_ACTION})
#: the first revision whose servers have tasks; those before the newest are asked for them
_FIRST_WITH_TASKS = "2025-11-25"
#: words that say nothing of a server
_NOISE = re.compile(r"\b(the|official|mcp|server)\b", re.IGNORECASE)
#: the name of the authentication method, and of its credential
_TOKEN = "access_token"
#: JSON-RPC's and the protocol's errors, and the errors of tools, which are results
FAILURE = {
    "when_present": ["error", "result.isError"],
    "code": ["error.code"],
    "message": ["error.message", "result.content.0.text"],
    "codes": {"upstream_not_found": ["-32601", "-32002"], "upstream_error": ["-32603"]},
}


def is_mcp_server(root: Node) -> bool:
    """Whether a document describes an MCP server: `mcp`, `server`, `serverInfo`, `capabilities` and `tools`."""
    return isinstance(root.get(MARK), str) and isinstance(root.get("tools"), list)


def from_mcp_server(root: Node) -> Document:
    """The tools as operations of one path; raises ImportFailed for a server without an address."""
    address = urlsplit(str(root.get("server") or ""))
    if not address.hostname or address.scheme not in ("https", "http"):
        raise ImportFailed("the document of an MCP server names the URL of the server in `server`")
    tools = [each for each in map(node_of, root["tools"]) if _fault(each) is None]
    title = _title(root, address.hostname)
    schemas = {str(number): _schema(tool, str(number)) for number, tool in enumerate(tools)}
    place = (address.path or "/") + (f"?{address.query}" if address.query else "")
    paths = {
        f"{place}#{tool['name']}": {
            "post": _operation(tool, str(number), schemas, title, _task_members(root, tool, address) | _output(tool))
        }
        for number, tool in enumerate(tools)
    }
    entities = sorted({_names(str(tool["name"]), title)[0] for tool in tools})
    of_kind: dict[str, Any] = {MARK: root[MARK], "failure": FAILURE}
    oauth = node_of(root.get("authentication")).get("oauth")
    if root.get("authentication") == "none":
        of_kind["authentication"] = {"open": {"title": "No credentials", "scheme": "none"}}
    elif isinstance(oauth, dict):
        of_kind |= with_oauth(address.hostname, oauth)
    return Document(
        {
            "openapi": "3.1.0",
            "info": {"title": title, "description": plain(node_of(root.get("serverInfo")).get("description"))},
            "servers": [{"url": f"{address.scheme}://{address.netloc}"}],
            "paths": paths,
            "components": {"schemas": schemas, "securitySchemes": {_TOKEN: _scheme(root)}},
            "security": [{_TOKEN: []}],
            "tags": [{"name": phrase(each), "description": f"Tools of {title}."} for each in entities],
            CORRECTIONS: {**of_kind, **node_of(root.get(CORRECTIONS))},
        }
    )


def hints(root: Node) -> Iterator[Finding]:
    """A finding for each tool of which the server says that it only reads, and for each that is left out."""
    for tool in map(node_of, root["tools"]):
        if fault := _fault(tool):
            yield Finding(confidence=Confidence.NEEDS_PERSON, place=ascii(tool.get("name"))[:80], reason=fault)
        elif node_of(tool.get("annotations")).get("readOnlyHint") is True:
            reason = "the server says that the tool only reads; confirm it by the effect `read`"
            yield Finding(confidence=Confidence.GUESSED, place=str(tool.get("name")), reason=reason, member="effect")


def with_oauth(host: str, oauth: Node) -> dict[str, Any]:
    """The members of a spec by which people sign in; these hosts receive credentials."""
    urls = (oauth.get(name) for name in ("token_url", "revocation_url", "registration_url"))
    hosts = [host, *(urlsplit(str(url)).hostname or "" for url in urls if url)]
    method = oauth_method("authorizationCode")
    return {"authentication": {"oauth": method}, "oauth": dict(oauth), "hosts": list(dict.fromkeys(hosts))}


def name_of(said: str, host: str) -> str:
    """The name of the kind of a server that says this name of itself, before it has said more."""
    title = _title({"serverInfo": {"title": said}}, host)
    return kind_name(Document({"info": {"title": title}, "servers": [{"url": f"https://{host}"}]}))


def _fault(tool: Node) -> str | None:
    """Why a tool is left out; None if it is not."""
    name = tool.get("name")
    if not (isinstance(name, str) and 0 < len(name) <= _MAX_NAME and name.isprintable()):
        return f"a tool needs a name of at most {_MAX_NAME} printable characters"
    if is_too_deep(tool):
        return f"the schema of the tool has more than {MAX_LEVELS} levels"
    return None


def _scheme(root: Node) -> Node:
    """How the access token is sent: as a bearer token, or in a header or a member of the query of the server's own."""
    header, query = (node_of(root.get("authentication")).get(place) for place in ("header", "query"))
    if isinstance(query, str):
        return {"type": "apiKey", "in": "query", "name": query, "description": "access token of the MCP server"}
    if isinstance(header, str):
        return {"type": "apiKey", "in": "header", "name": header, "description": "access token of the MCP server"}
    return {"type": "http", "scheme": "bearer", "description": "access token of the MCP server"}


def _title(root: Node, host: str) -> str:
    info = node_of(root.get("serverInfo"))
    said = plain(info.get("title") or info.get("name"), 60)
    words = re.sub(r"[\s_-]+", " ", _NOISE.sub(" ", said.replace("_", " ").replace("-", " "))).strip()
    words = words or (host.split(".")[-2:-1] or [host])[0]
    return words if any(each.isupper() for each in words) else words.title()


def _operation(
    tool: Node, number: str, schemas: Mapping[str, Node], title: str, members: Mapping[str, Any]
) -> dict[str, Any]:
    name = str(tool["name"])
    entity, action = _names(name, title)
    operation = {
        "operationId": name,
        "summary": _worded(tool.get("title") or node_of(tool.get("annotations")).get("title")),
        "description": _worded(tool.get("description")) or ("" if _worded(name) else f"A tool of {title}."),
        "responses": {"200": {"description": "the result"}},
        "tags": [phrase(entity)],
        CORRECTIONS: {"entity": entity, "action": action, "effect": "write", "tool": name, **_RESULT, **members},
    }
    if not schemas[number].get("properties") and not schemas[number].get("additionalProperties"):
        return operation
    schema = {"$ref": f"#/components/schemas/{number}"}
    is_required = bool(schemas[number].get("required"))
    body = {"required": is_required, "content": {"application/json": {"schema": schema}}}
    return {**operation, "requestBody": body}


def _worded(text: object) -> str:
    """A text that has words; an empty one in place of any other."""
    return text if isinstance(text, str) and re.search(r"\w", plain(text)) else ""


#: the result of every tool: `content`, and `structuredContent` if the tool has an output schema
_RESULT: Mapping[str, Any] = {
    "record": "result",
    "fields": {"content": "array<object>", "structuredContent": "object?", "isError": "boolean?"},
}


def _output(tool: Node) -> dict[str, Any]:
    """The schema against which the results of a tool are checked, if it states one."""
    schema = output_schema(tool.get("outputSchema"))
    return {} if schema is None else {"output_schema": schema}


def _task_members(root: Node, tool: Node, address: SplitResult) -> dict[str, Any]:
    """The members of a tool that may answer with a task, which a job follows; none for another tool.

    Since 2026-07-28 the server decides at each call. Servers of 2025-11-25 say it of each tool, and are asked for it.
    """
    said = node_of(tool.get("execution")).get("taskSupport")
    capabilities, is_asked = node_of(root.get("capabilities")), has_handshake(root[MARK])
    if is_asked:
        of_calls = node_of(node_of(node_of(capabilities.get("tasks")).get("requests")).get("tools"))
        may_answer = root[MARK] == _FIRST_WITH_TASKS and "call" in of_calls and said in ("optional", "required")
    else:
        may_answer = TASKS in node_of(capabilities.get("extensions")) and said != "forbidden"
    if not may_answer:
        return {}
    sent = {"request": f"POST {address.path or '/'}", "constant_query": dict(parse_qsl(address.query, True))}
    requests = {each: {**sent, "task": each} for each in ("get", "result", "cancel")}
    wait = "result.pollInterval" if is_asked else "result.pollIntervalMs"
    how = {
        "start": {"id": "result.task.taskId" if is_asked else "result.taskId", "immediate": True},
        "status": {**requests["get"], **_STATES, "wait": wait},
        "results": {"request": requests["result"]},
        "cancel": requests["cancel"],
    }
    return {"runs": "job", "long_running": how}


def _names(tool: str, title: str) -> tuple[str, str]:
    """The entity, by the tool's prefix or else the server's name, and the action."""
    prefix, *rest = _SEPARATOR.split(tool, maxsplit=1)
    own = identifier(rest[0]) if rest else ""
    if own and identifier(prefix) and _is_free(own):
        return entity_name(identifier(prefix)), own
    action = identifier(tool) or "call"
    names = (action, f"call_{action}", f"call_tool_{action}")
    return entity_name(identifier(title) or "tools"), next((each for each in names if _is_free(each)), names[-1])


def _is_free(action: str) -> bool:
    """Whether a tool's action may have the name: none that means something else in a spec, or is taken for one."""
    return action not in _RESERVED and allowed(action) == action


def _schema(tool: Node, number: str) -> Node:
    """The tool's input schema; references within it lead to where it stands in the document."""
    return node_of(_moved(node_of(tool.get("inputSchema")), f"#/components/schemas/{number}"))


def _moved(node: Any, place: str) -> Any:
    if isinstance(node, list):
        return [_moved(each, place) for each in node]
    if not isinstance(node, dict):
        return node
    moved = {name: _moved(each, place) for name, each in node.items()}
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        moved["$ref"] = f"{place}{reference[1:]}"
    return moved
