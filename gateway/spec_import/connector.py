"""Makes the `connector.yaml` of a document: authentication, error responses. Pure."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from gateway.spec_import.authentication import Authentication
from gateway.spec_import.model import Finding, Node, SourceOperation
from gateway.spec_import.references import Document, node_of
from gateway.spec_import.responses import flattened
from gateway.spec_import.servers import Address
from gateway.spec_import.words import identifier, plain

#: words of titles that are not part of the application's name
_NOISE = re.compile(r"\b(the|rest|open|http|web|public|api|apis|reference|specification|v?\d+(\.\d+)*)\b", re.I)
#: names of members of error responses, the most certain first
_CODES = ("code", "error_code", "errorCode", "type", "error", "status")
_MESSAGES = ("message", "detail", "error_description", "description", "title", "error", "msg")
_REQUEST_IDS = ("request_id", "requestId", "correlationId", "trace_id")
_MAX_NAME, _MAX_WORDS = 40, 3


def kind_name(document: Document) -> str:
    """The name of the kind from the document's title, `pagerduty` from `PagerDuty API`, else from its server's host."""
    title = plain(node_of(document.root.get("info")).get("title"), 80)
    name = re.sub(r"[^a-z0-9]+", "-", _NOISE.sub(" ", title).lower()).strip("-")[:_MAX_NAME].strip("-")
    if not name or name.count("-") > _MAX_WORDS:
        servers = document.root.get("servers")
        host = urlsplit(str(node_of(servers[0] if isinstance(servers, list) and servers else {}).get("url", ""))).netloc
        name = identifier((host.split(".")[-2:-1] or [name])[0]).replace("_", "-")
    return (name if name[:1].isalpha() else f"kind-{name}") if name else "imported"


def connector_of(
    document: Document, operations: Sequence[SourceOperation], kind: str, address: Address, answers: Mapping[str, str]
) -> tuple[dict[str, Any], list[Finding]]:
    """The members of `connector.yaml` except paging and health check; raises ImportFailed for a placeholder."""
    info = node_of(document.root.get("info"))
    title = plain(_NOISE.sub(" ", str(info.get("title") or "")), 80).strip(" -–—:")
    title = title if title and title.count(" ") < _MAX_WORDS else kind.replace("-", " ").capitalize()
    authentication = Authentication(document, operations, address, answers)
    hosts = dict.fromkeys([*address.hosts, *authentication.hosts])
    connector: dict[str, Any] = {
        "kind": kind,
        "title": title,
        "description": plain(info.get("description")) or f"Read and change records of {title}.",
        "server": address.server,
        "hosts": ["*"] if "*" in hosts else list(hosts),
        "environment": {**address.environment, **authentication.environment},
        "authentication": authentication.methods,
        "oauth": authentication.oauth,
        "failure": _failure(document, operations),
    }
    return {name: value for name, value in connector.items() if value}, authentication.findings


def _failure(document: Document, operations: Sequence[SourceOperation]) -> dict[str, Any]:
    """The paths of code, message and request id in error responses, the most frequent first."""
    counts: dict[str, Counter[str]] = {"code": Counter(), "message": Counter(), "request_id": Counter()}
    seen: dict[int, dict[str, str]] = {}
    for schema in (each for operation in operations for each in operation.failures):
        if id(schema) not in seen:
            seen[id(schema)] = _error_paths(document, schema)
        for member, path in seen[id(schema)].items():
            counts[member][path] += 1
    return {member: [path for path, _ in each.most_common(4)] for member, each in counts.items() if each}


def _error_paths(document: Document, schema: Node) -> dict[str, str]:
    """The paths of code, message and request id in one error response: in `error`, at the top, or in `errors.0`."""
    found: dict[str, str] = {}
    node = flattened(document, schema)
    properties = node_of(node.get("properties"))
    levels = [("", node)]
    if isinstance(error := flattened(document, properties.get("error")), dict) and error.get("properties"):
        levels.insert(0, ("error.", error))
    items = flattened(document, flattened(document, properties.get("errors")).get("items"))
    if items.get("properties"):
        levels.append(("errors.0.", items))
    for prefix, level in levels:
        texts = {
            str(name)
            for name, member in node_of(level.get("properties")).items()
            if flattened(document, member).get("type") in ("string", "integer", None)
            and "." not in str(name)
            and not node_of(flattened(document, member).get("properties"))
        }
        for member, names in (("code", _CODES), ("message", _MESSAGES), ("request_id", _REQUEST_IDS)):
            name = next((each for each in names if each in texts and f"{prefix}{each}" not in found.values()), None)
            if name is not None:
                found.setdefault(member, f"{prefix}{name}")
    return found
