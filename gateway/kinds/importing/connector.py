"""Makes the `connector.yaml` of a document: authentication, error responses. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from gateway.kinds.importing.authentication import Authentication
from gateway.kinds.importing.model import Finding, Node, SourceOperation
from gateway.kinds.importing.references import Document, node_of
from gateway.kinds.importing.responses import flattened
from gateway.kinds.importing.servers import ServerAddress
from gateway.kinds.importing.words import identifier, plain

#: words of titles that are not part of the application's name
_NOISE = re.compile(r"\b(the|rest|open|http|web|public|api|apis|reference|specification|v?\d+(\.\d+)*)\b", re.I)
#: names of members of error responses in snake case, the most certain first
_CODES = ("code", "error_code", "type", "error_type", "error", "status")
_MESSAGES = (
    "message", "msg", "error_description", "detail", "details", "description", "reason", "summary", "title", "error",
    "errors", "text",
)  # fmt: skip
#: parts of names of texts that are not for callers
_NO_MESSAGE = re.compile(r"debug|trace|url|link|type|code")
_REQUEST_IDS = ("request_id", "correlation_id", "trace_id")
_MAX_NAME, _MAX_WORDS, _MAX_PATHS = 40, 3, 4


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
    document: Document,
    operations: Sequence[SourceOperation],
    kind: str,
    address: ServerAddress,
    answers: Mapping[str, str],
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
    """The paths of code, message, details and request id in error responses, the most frequent first."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("code", "message", "details", "request_id")}
    seen: dict[int, dict[str, str]] = {}
    for schema in (each for operation in operations for each in operation.failures):
        if id(schema) not in seen:
            seen[id(schema)] = _error_paths(document, schema)
        for member, path in seen[id(schema)].items():
            counts[member][path] += 1
    return {member: [path for path, _ in each.most_common(_MAX_PATHS)] for member, each in counts.items() if each}


@dataclass(frozen=True, slots=True)
class _Text:
    """A text in an error response."""

    path: str
    #: in snake case
    name: str
    #: whether it is an item of a list of texts
    is_item: bool = False

    @property
    def depth(self) -> int:
        return self.path.count(".")


def _error_paths(document: Document, schema: Node) -> dict[str, str]:
    """The paths of code, message, details and request id in one error response."""
    texts = list(_texts(document, schema))
    named = [(rank, text) for text in texts if (rank := _rank(text)) is not None]
    found: dict[str, str] = {}
    if named:
        found["message"] = min(named, key=lambda each: (".0" in each[1].path, each[0], each[1].depth))[1].path
    around = found.get("message", "").rpartition(".")[0]
    for member, names in (("code", _CODES), ("request_id", _REQUEST_IDS)):
        ranked = [
            (text.path.rpartition(".")[0] != around, text.depth, names.index(text.name), text.path)
            for text in texts
            if text.name in names and not text.is_item and text.path != found.get("message")
        ]
        if ranked:
            found[member] = min(ranked)[3]
    listed = [text for _, text in named if ".0" in text.path and text.path != found["message"]]
    if listed:
        found["details"] = re.sub(r"\.0(?=\.|$)", ".*", listed[0].path)
    return found


def _rank(text: _Text) -> float | None:
    """How certain a text is the message, the lowest number first; None if it is none."""
    if text.is_item:
        return 4.5 if re.fullmatch(r".*(errors?|messages?|details?|reasons?)", text.name) else None
    if _NO_MESSAGE.search(text.name):
        return None
    for rank, ending in enumerate(_MESSAGES):
        if text.name == ending:
            return rank
        if text.name.endswith(f"_{ending}"):
            return rank + 0.5
    return None


def _texts(document: Document, schema: object, prefix: str = "", depth: int = 4) -> Iterator[_Text]:
    """Every text in an error response, the first item of each list only."""
    node = flattened(document, schema)
    if _is_list(node):
        yield from _texts(document, node.get("items"), f"{prefix}0.", depth - 1) if depth else ()
        return
    for name, value in node_of(node.get("properties")).items():
        member, path = flattened(document, value), f"{prefix}{name}"
        if "." in str(name) or depth == 0:
            continue
        if _is_list(member):
            items = flattened(document, member.get("items"))
            if node_of(items.get("properties")):
                yield from _texts(document, items, f"{path}.0.", depth - 1)
            elif items.get("type") in ("string", None):
                yield _Text(f"{path}.0", identifier(str(name)), is_item=True)
        elif node_of(member.get("properties")):
            yield from _texts(document, member, f"{path}.", depth - 1)
        elif member.get("type") in ("string", "integer", None):
            yield _Text(path, identifier(str(name)))


def _is_list(node: Node) -> bool:
    return node.get("type") == "array" or ("items" in node and "properties" not in node)
