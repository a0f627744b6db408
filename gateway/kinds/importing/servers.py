"""Finds the server of a kind, its hosts and the variables of its URL; credentials never go to a placeholder. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

from gateway.kinds.hosts import is_forbidden_host
from gateway.kinds.importing.model import Confidence, Finding, ImportFailed, Node, NotMapped
from gateway.kinds.importing.references import node_of
from gateway.kinds.importing.words import identifier, phrase, plain, words

_PLACE = "the document"
_MAX_SERVERS = 8
#: the variable of an application whose host the document does not name
ORIGIN = "origin"
#: hosts that publish documents of other applications
_PUBLISHERS = re.compile(
    r"(^|\.)(github\.com|githubusercontent\.com|github\.io|gitlab\.com|bitbucket\.org|jsdelivr\.net|unpkg\.com"
    r"|swaggerhub\.com|amazonaws\.com|googleapis\.com|apis\.guru|readme\.io|postman\.com)$"
)
#: first labels of hosts that stand for the customer's own
_STANDING_FOR = re.compile(
    r"your.*|my[_-]?(domain|company|instance|account|org|organization|server|site|store|shop|app|subdomain|api|host)"
    r"|.*(sub[_-]?domain|placeholder|change[_-]?me).*|example|acme|tenant|customer|company|domain|instance|host|hostname"
    r"|server|organization|workspace|x{2,}|foo|some.*",
    re.I,
)
#: domains that are reserved for documentation (RFC 2606), as hosts that stand for an application's
_RESERVED = re.compile(r"([^.]+\.)?example\.(com|net|org)|(.*\.)?(example|test|invalid|tld)", re.I)
#: words that mark a server that has no live data
_TRIAL = frozenset(["sandbox", "test", "testing", "staging", "stage", "dev", "demo", "mock", "uat", "qa", "preprod"])
#: names and defaults of variables that are part of every account's URL
_OF_ALL = re.compile(r"(api)?[_-]?version|ver|v|base[_-]?path|path|prefix|scheme|protocol|port", re.I)
_VERSION = re.compile(r"/?(api/?)?v?\d+(\.\d+)*/?", re.I)
#: second-level labels below which each name has another owner
_PUBLIC_SUFFIX = re.compile(r"(co|com|net|org|gov|edu|ac|or|ne|go|gob|nom)\.[a-z]{2}")
_ANSWER = "give the server's URL: --server https://…, or --server '{origin}' if each account has a host of its own"


@dataclass(frozen=True)
class ServerAddress:
    """Where the requests of a kind go."""

    #: with `{name}` for the variables of `environment`
    server: str
    hosts: tuple[str, ...]
    environment: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def example(self) -> str:
        """The server with defaults in place of variables."""
        return re.sub(
            r"{(\w+)}", lambda name: str(self.environment.get(name[1], {}).get("default", name[1])), self.server
        )


def address_of(
    servers: object, *, server: str | None, base_url: str, answers: Mapping[str, str]
) -> tuple[ServerAddress, list[Finding]]:
    """The address of a document's servers, or of `server` in place of them; raises ImportFailed for a placeholder.

    `answers` are values of variables in the servers' URLs.
    """
    listed = [{"url": server}] if server else [node_of(each) for each in (servers if isinstance(servers, list) else ())]
    findings: list[Finding] = []
    filled = [_filled(each, answers, findings) for each in listed or [{"url": "/"}]]
    located = [{**each, "url": _located(each["url"], base_url)} for each in filled]
    usable = [each for each in located if server or placeholder_of(each["url"]) is None]
    if not usable:
        raise ImportFailed(f"{placeholder_of(located[0]['url'])}; {_ANSWER}")
    usable.sort(key=lambda each: _is_trial(each["url"], plain(each.get("description"))))
    first = usable[0]
    if _is_trial(first["url"], plain(first.get("description"))) and not server:
        findings.append(
            _guess("the document has only a server for trials, so each connector names its own", first["url"])
        )
        return _of_trial(first["url"], is_alone=len(usable) == len(located)), findings
    if first["url"].startswith("http://"):
        findings.append(_guess("the server is used with https; the document has http", first["url"]))
    for each in usable:
        each["url"] = each["url"].replace("http://", "https://", 1)
    fixed = [each for each in usable if "{" not in each["url"]]
    if "{" not in first["url"] and len(fixed) > 1:
        address = _of_choice(fixed[:_MAX_SERVERS], findings)
    elif first["url"].startswith(f"{{{ORIGIN}}}"):
        findings.append(_guess("the document names no host, so each connector has a variable for it", ORIGIN))
        address = _of_origin(first["url"])
    else:
        address = with_variables(first["url"], _variables(first))
    for host in address.hosts:
        if host != "*" and is_forbidden_host(host.removeprefix("*.")):
            raise ImportFailed(f"{host} is not a public host; {_ANSWER}")
    return address, findings


def with_variables(url: str, variables: Mapping[str, Node]) -> ServerAddress:
    """The address of a URL: each of its variables becomes one of the connector; raises ImportFailed for a placeholder.

    The hosts are those below the last label that is a variable.
    """
    environment: dict[str, dict[str, Any]] = {}
    netloc = urlsplit(url.replace("{", "%7B").replace("}", "%7D")).netloc.replace("%7B", "{").replace("%7D", "}")
    for written in dict.fromkeys(re.findall(r"{([^}]*)}", url)):
        name = identifier(written) or "variable"
        in_host = f"{{{written}}}" in netloc
        environment[name] = _variable(written, variables.get(written, {}), netloc if in_host else "")
        url = url.replace(f"{{{written}}}", f"{{{name}}}")
        netloc = netloc.replace(f"{{{written}}}", f"{{{name}}}")
    if re.fullmatch(r"{\w+}(:\d+)?", netloc):
        return _of_origin(re.sub(r"^https://[^/]+", f"{{{ORIGIN}}}", url), environment)
    host = netloc.partition(":")[0].lower() if "{" not in netloc else netloc
    suffix = re.sub(r"^.*{\w+}[^.]*", "", host)
    if host != suffix and not hosts_below(suffix[1:]):
        named = ", ".join(f"--variable {name}=…" for name in re.findall(r"{(\w+)}", host))
        raise ImportFailed(f"the host {host} could be anyone's; give values of its variables: {named}")
    return ServerAddress(url, (f"*{suffix}" if host != suffix else host,), environment)


def own_address(servers: object, address: ServerAddress, answers: Mapping[str, str]) -> ServerAddress | None:
    """The address of an operation with servers of its own, if it is another than that of the kind; raises NotMapped."""
    first = node_of(servers[0]) if isinstance(servers, list) and servers else {}
    if not isinstance(first.get("url"), str):
        return None
    url = _filled(first, answers, [])["url"]
    if url.startswith("/") or not url:
        url = f"{re.match(r'(https://[^/]+|{[^}]*})?', address.server)[0]}{url}"  # type: ignore[index]  # always matches
    url = re.sub(r"^http://", "https://", url)
    reason = placeholder_of(url)
    if reason is not None or not re.match(r"https://[^/]|{origin}", url):
        raise NotMapped("the operation has a server that is not usable", reason or url)
    try:
        found = _of_origin(url) if url.startswith(f"{{{ORIGIN}}}") else with_variables(url, _variables(first))
    except ImportFailed as wide:
        raise NotMapped("the operation has a server that is not usable", str(wide)) from wide
    if "*" in found.hosts and "*" not in address.hosts:
        raise NotMapped("the operation has a server of its own at any host", found.server)
    is_choice = ORIGIN in address.environment and f"{{{ORIGIN}}}{urlsplit(found.server).path}" == address.server
    if found.server == address.server or (is_choice and set(found.hosts) <= set(address.hosts)):
        return None
    optional = {name: {**each, "required": False} for name, each in found.environment.items()}
    return ServerAddress(found.server, found.hosts, {**optional, **address.environment} if optional else {})


def placeholder_of(url: str) -> str | None:
    """Why the host of a URL is not that of an application, as the beginning of an error; None for a usable one."""
    host = re.sub(r"{[^}]*}", "x", _netloc(url).partition(":")[0])
    if not host or host == "x" or url.startswith(f"{{{ORIGIN}}}"):
        return None
    if "{" not in url and is_forbidden_host(host):
        return f"{host} is not a public host"
    labels = host.split(".")
    is_written_as_one = re.search(r"[A-Z]{2,}_|[<>$%\[\]]|_[A-Z]{2,}", host) is not None
    if is_written_as_one or _RESERVED.fullmatch(host) or (len(labels) > 1 and _STANDING_FOR.fullmatch(labels[0])):
        return f"{host} is a placeholder"
    if len(labels) == 2 and re.fullmatch(r"your.*|my[_-]?(domain|company)|domain|company", labels[0], re.I):
        return f"{host} is a placeholder"
    return None


def is_trial_host(url: str) -> bool:
    """Whether the host of a URL is one for trials, by its name."""
    return _is_trial(url, "")


def _is_trial(url: str, description: str) -> bool:
    return bool(_TRIAL & {*words(_netloc(url)), *words(description)[:4]})


def _netloc(url: str) -> str:
    found = re.match(r"https?://([^/?#]+)", url)
    return found[1] if found else ""


def _variables(server: Node) -> dict[str, Node]:
    return {str(name): node_of(each) for name, each in node_of(server.get("variables")).items()}


def _filled(server: Node, answers: Mapping[str, str], findings: list[Finding]) -> dict[str, Any]:
    """The server with the values of variables that are answered, have one value, or are part of every account's URL."""
    url, variables = str(server.get("url") or "/").strip(), _variables(server)
    host = _netloc(url)
    for written in dict.fromkeys(re.findall(r"{([^}]*)}", url)):
        variable = variables.get(written, {})
        values, default = [str(each) for each in variable.get("enum") or ()], str(variable.get("default") or "")
        answer = answers.get(written, answers.get(identifier(written)))
        in_host = f"{{{written}}}" in host and f":{{{written}}}" not in host
        is_of_all = not in_host and (bool(values) or _OF_ALL.fullmatch(written) or _VERSION.fullmatch(default))
        if answer is None and len(set(values)) == 1:
            answer = values[0]
        elif answer is None and is_of_all and (default or values):
            answer = default or values[0]
            findings.append(_guess("a variable of the server is replaced by its default", f"{written} = {answer}"))
        if answer is not None:
            url = url.replace(f"{{{written}}}", answer)
    return {**server, "url": re.sub(r"^(https://[^/:]+):443(?=/|$)", r"\1", url).rstrip("/")}


def _located(url: str, base_url: str) -> str:
    """An absolute URL; one without a host is at the document's host, or begins with the variable `origin`."""
    if url.startswith("//"):
        return f"https:{url}"
    if re.match(r"https?://[^/]|{", url):
        whole = re.match(r"{([^}]*)}(?=/|$)", url)
        return f"{{{ORIGIN}}}{url[whole.end() :]}" if whole else url
    if base_url and not _PUBLISHERS.search(urlsplit(base_url).hostname or "") and placeholder_of(base_url) is None:
        return urljoin(base_url, url or "/").rstrip("/")
    path = url if url.startswith("/") or not url else f"/{url}"
    return f"{{{ORIGIN}}}{path}" if re.fullmatch(r"[^\s:]*", path) else f"{{{ORIGIN}}}"


def _of_origin(url: str, environment: Mapping[str, dict[str, Any]] | None = None) -> ServerAddress:
    """The address of an application that each customer has at a host of its own."""
    variable = {"description": "URL of the application, without a path", "type": "origin"}
    others = {name: each for name, each in (environment or {}).items() if f"{{{name}}}" in url and name != ORIGIN}
    return ServerAddress(url, ("*",), {ORIGIN: {**variable, "example": "https://app.your-company.com"}, **others})


def _of_trial(url: str, *, is_alone: bool) -> ServerAddress:
    """The address of an application whose live server the document does not name; `is_alone` if it names no other."""
    host, path = urlsplit(url).hostname or "", urlsplit(url).path
    below = hosts_below(host.partition(".")[2])
    description = f"URL of the application, without a path; for trials https://{host}"
    variable = {"description": description, "type": "origin", "example": f"https://{host}"}
    return ServerAddress(f"{{{ORIGIN}}}{path}", (host, *below) if is_alone and below else ("*",), {ORIGIN: variable})


def hosts_below(domain: str) -> tuple[str, ...]:
    """The pattern of all hosts below a domain; none if the domain has names of several owners."""
    return (f"*.{domain}",) if domain.count(".") and not _PUBLIC_SUFFIX.fullmatch(domain) else ()


def _of_choice(servers: Sequence[Node], findings: list[Finding]) -> ServerAddress:
    """If several servers have the same path, each connector chooses one by a variable; else the first is used."""
    path = urlsplit(servers[0]["url"]).path
    same = [each for each in servers if urlsplit(each["url"]).path == path]
    hosts = list(dict.fromkeys(urlsplit(each["url"]).hostname or "" for each in same))
    if len(same) < len(servers):
        findings.append(_guess("of several servers, those with another path than the first are left out", path or "/"))
    if len(hosts) < 2:
        return ServerAddress(servers[0]["url"], tuple(hosts))
    said = {urlsplit(each["url"]).hostname or "": plain(each.get("description"), 60) for each in reversed(same)}
    choices = "; ".join(f"https://{host} {said[host]}".strip() for host in hosts)
    variable = {"description": f"server: {choices}", "type": "origin", "default": f"https://{hosts[0]}"}
    return ServerAddress(f"{{{ORIGIN}}}{path}", tuple(hosts), {ORIGIN: variable})


def _variable(written: str, variable: Node, netloc: str) -> dict[str, Any]:
    """A variable of the connector; an enumeration has its default, any other must be given."""
    values, default = [str(each) for each in variable.get("enum") or ()], str(variable.get("default") or "")
    whose = "of the account's address" if netloc else "in the URL of the account"
    description = plain(variable.get("description")) or f"{phrase(written)} {whose}"
    is_label = netloc and all(re.fullmatch(r"[a-z0-9-]+", each) for each in values)
    found: dict[str, Any] = {"description": f"{description}: {', '.join(values)}" if values else description}
    found |= {} if is_label else {"type": "text"}
    if values:
        return {**found, "default": default if default in values else values[0]}
    return {**found, "example": default or "acme"}


def _guess(reason: str, detail: str) -> Finding:
    return Finding(confidence=Confidence.GUESSED, place=_PLACE, reason=reason, detail=detail, member="server")
