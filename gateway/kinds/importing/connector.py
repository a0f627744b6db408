"""Makes the `connector.yaml` of a document: server, hosts, authentication, error responses. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

from gateway.kinds.hosts import is_forbidden_host
from gateway.kinds.importing.authentication import Authentication
from gateway.kinds.importing.model import Confidence, Finding, ImportFailed, Node, SourceOperation
from gateway.kinds.importing.references import Document, node_of
from gateway.kinds.importing.responses import flattened
from gateway.kinds.importing.words import identifier, plain

_PLACE = "the document"
#: words of titles that are not part of the application's name
_NOISE = re.compile(r"\b(the|rest|open|http|web|public|api|apis|reference|specification|v?\d+(\.\d+)*)\b", re.I)
#: names of members of error responses, the most certain first
_CODES = ("code", "error_code", "errorCode", "type", "error", "status")
_MESSAGES = ("message", "detail", "error_description", "description", "title", "error", "msg")
_REQUEST_IDS = ("request_id", "requestId", "correlationId", "trace_id")
_MAX_NAME, _MAX_WORDS, _MAX_SERVERS = 40, 3, 8


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
    document: Document, operations: Sequence[SourceOperation], kind: str, server: str | None, base_url: str
) -> tuple[dict[str, Any], list[Finding]]:
    """The members of `connector.yaml` except paging and health check; raises ImportFailed without a public server."""
    address, findings = _address(document, server, base_url)
    info = node_of(document.root.get("info"))
    title = plain(_NOISE.sub(" ", str(info.get("title") or "")), 80).strip(" -–—:")
    title = title if title and title.count(" ") < _MAX_WORDS else kind.replace("-", " ").capitalize()
    known = address["environment"]["origin"]["default"] if "origin" in address["environment"] else address["server"]
    authentication = Authentication(document, operations, known)
    hosts = list(dict.fromkeys([*address["hosts"], *authentication.hosts, *_operation_hosts(operations)]))
    connector: dict[str, Any] = {
        "kind": kind,
        "title": title,
        "description": plain(info.get("description")) or f"Read and change records of {title}.",
        "server": address["server"],
        "hosts": hosts,
        "environment": address["environment"],
        "authentication": authentication.methods,
        "oauth": authentication.oauth,
        "failure": _failure(document, operations),
    }
    found = {name: value for name, value in connector.items() if value}
    return found, [*findings, *authentication.findings]


def _operation_hosts(operations: Iterable[SourceOperation]) -> list[str]:
    hosts = (urlsplit(operation.server).hostname for operation in operations if operation.server)
    return [host for host in hosts if host and not is_forbidden_host(host)]


def _address(document: Document, server: str | None, base_url: str) -> tuple[dict[str, Any], list[Finding]]:
    """`server`, `hosts` and `environment`."""
    listed = document.root.get("servers")
    servers = [{"url": server}] if server else [node_of(each) for each in listed or ()]
    joined = [{**each, "url": urljoin(base_url, str(each.get("url", ""))).rstrip("/")} for each in servers]
    usable = [each for each in joined if re.match(r"https?://[^/]", each["url"])]
    if not usable:
        raise ImportFailed("the document names no server; give its URL: --server https://api.example.com")
    findings = []
    if usable[0]["url"].startswith("http://"):
        findings.append(_guess("the server is used with https; the document has http", usable[0]["url"]))
    for each in usable:
        each["url"] = each["url"].replace("http://", "https://", 1)
    fixed = [each["url"] for each in usable if "{" not in each["url"]]
    if "{" in usable[0]["url"]:
        address = _with_variables(usable[0], findings)
    elif len(fixed) > 1:
        address = _of_choice(usable, fixed[:_MAX_SERVERS], findings)
    else:
        address = {"server": fixed[0], "hosts": [urlsplit(fixed[0]).hostname or ""], "environment": {}}
    for host in address["hosts"]:
        if is_forbidden_host(host.removeprefix("*.")):
            raise ImportFailed(f"{host} is not a public host; give the server's URL: --server https://api.example.com")
    return address, findings


def _of_choice(servers: Sequence[Node], urls: Sequence[str], findings: list[Finding]) -> dict[str, Any]:
    """If several servers have the same path, each connector chooses one by a variable; else the first is used."""
    paths = {urlsplit(url).path for url in urls}
    hosts = list(dict.fromkeys(urlsplit(url).hostname or "" for url in urls))
    public = [host for host in hosts if not is_forbidden_host(host)]
    if len(paths) > 1 or len(public) < 2 or urlsplit(urls[0]).hostname not in public:
        if len(paths) > 1:
            findings.append(_guess("the first of several servers is used", urls[0]))
        return {"server": urls[0], "hosts": hosts[:1], "environment": {}}
    descriptions = [plain(each.get("description"), 60) for each in servers]
    choices = "; ".join(
        f"https://{host} {text}".strip() for host, text in zip(hosts, descriptions, strict=False) if host in public
    )
    variable = {"description": f"server: {choices}", "type": "origin", "default": f"https://{public[0]}"}
    return {"server": f"{{origin}}{paths.pop()}", "hosts": public, "environment": {"origin": variable}}


def _with_variables(server: Node, findings: list[Finding]) -> dict[str, Any]:
    """A variable that is one label of the host stays a variable; all others are replaced by their defaults."""
    url, environment = server["url"], {}
    variables = {str(name): node_of(each) for name, each in node_of(server.get("variables")).items()}
    host = re.match(r"https://([^/]+)", url)
    for written in dict.fromkeys(re.findall(r"{([^}]*)}", url)):
        variable = variables.get(written, {})
        default = str(variable.get("default", ""))
        label = re.search(rf"(^|\.){{{re.escape(written)}}}\.", host[1]) if host else None
        if label and re.fullmatch(r"[a-z0-9-]*", default):
            name = identifier(written) or "host_name"
            url = url.replace(f"{{{written}}}", f"{{{name}}}")
            values = ", ".join(map(str, variable.get("enum") or ()))
            description = plain(variable.get("description")) or f"{written} of the account's address"
            environment[name] = {"description": f"{description}: {values}" if values else description}
            is_choice = bool(values)
            environment[name] |= {"default": default} if is_choice and default else {"example": default or "acme"}
        else:
            url = url.replace(f"{{{written}}}", default)
            findings.append(_guess("a variable of the server is replaced by its default", f"{written} = {default}"))
    hosts = [re.sub(r"^.*{\w+}", "*", urlsplit(url.replace("{", "%7B")).netloc.replace("%7B", "{"))]
    if not re.match(r"https://[^/]+\.[^/]+", url):
        raise ImportFailed("the server's host is a variable without a default; give its URL: --server https://…")
    return {"server": url, "hosts": hosts, "environment": environment}


def _guess(reason: str, detail: str) -> Finding:
    return Finding(confidence=Confidence.GUESSED, place=_PLACE, reason=reason, detail=detail, member="server")


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
