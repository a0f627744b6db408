"""Maps security schemes to authentication methods: pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

from gateway.foundation.hosts import host_matches
from gateway.kinds.importing.model import Confidence, Finding, ImportFailed, Node, SourceOperation
from gateway.kinds.importing.references import Document, node_of
from gateway.kinds.importing.servers import (
    ORIGIN,
    ServerAddress,
    hosts_below,
    is_trial_host,
    placeholder_of,
    with_variables,
)
from gateway.kinds.importing.words import identifier, plain

Method = dict[str, Any]
_PLACE = "the document"
#: names of headers that hold credentials
_SECRET_HEADER = re.compile(r"(api|access|app|auth|private)[-_]?(key|token|secret)|^authorization$|^x?-?token$", re.I)
_GRANTS = ("authorizationCode", "clientCredentials")


class Authentication:
    """The methods of a document, its OAuth endpoints with their hosts and variables, and the findings for a person.

    Raises ImportFailed if the host of a token URL is a placeholder.
    """

    def __init__(
        self,
        document: Document,
        operations: Sequence[SourceOperation],
        address: ServerAddress,
        answers: Mapping[str, str] | None = None,
    ) -> None:
        self._schemes = {
            str(name): document.resolved(each)
            for name, each in node_of(node_of(document.root.get("components")).get("securitySchemes")).items()
        }
        self._address = address
        self._answers = answers or {}
        #: hosts that receive credentials, in addition to those of the servers
        self.hosts: list[str] = []
        #: variables of connectors, in addition to those of the servers
        self.environment: dict[str, dict[str, Any]] = {}
        self.methods: dict[str, Method] = {}
        self.oauth: dict[str, Any] | None = None
        self.findings: list[Finding] = []
        for needed in _requirements(document, operations, list(self._schemes)):
            self._add(needed, _scopes(document, needed))
        if not self.methods:
            self._assume(operations)
        elif all(method.get("grant_type") for method in self.methods.values()):
            self.methods["access_token"] = bearer("OAuth access token")

    def _add(self, needed: Sequence[str], scopes: Sequence[str]) -> None:
        schemes = {name: self._schemes.get(name, {}) for name in needed}
        if len(schemes) == 1:
            [(name, scheme)] = schemes.items()
            self._add_one(name, scheme, scopes)
        elif all(
            scheme.get("type") == "apiKey" or _is_bearer(scheme) or _is_oauth(scheme) for scheme in schemes.values()
        ):
            self._add_keys("_and_".join(map(identifier, needed)), schemes)
        else:
            self._report(Confidence.NEEDS_PERSON, "security schemes that must be combined", " and ".join(needed))

    def _add_one(self, name: str, scheme: Node, scopes: Sequence[str]) -> None:
        kind, title = scheme.get("type"), plain(scheme.get("description"), 120)
        http = str(scheme.get("scheme", "")).lower()
        if kind == "http" and http == "basic":
            self.methods[_free(self.methods, name)] = basic(title)
        elif _is_bearer(scheme):
            self.methods[_free(self.methods, name)] = bearer(title)
        elif kind in ("apiKey", "http"):
            self._add_keys(identifier(name), {name: scheme})
        elif kind == "oauth2":
            self._add_oauth(name, scheme, scopes)
        elif kind == "openIdConnect":
            self.methods[_free(self.methods, name)] = bearer(title or "OAuth access token")
        else:
            self._report(Confidence.NEEDS_PERSON, f"the security scheme {kind} is not mapped", name)

    def _add_keys(self, name: str, schemes: Mapping[str, Node]) -> None:
        headers, query, credentials = {}, {}, {}
        for key, scheme in schemes.items():
            field = identifier(key) or "api_key"
            title = plain(scheme.get("description"), 120) or f"{key} of the application"
            place, wire = scheme.get("in", "header"), str(scheme.get("name", "Authorization"))
            if scheme.get("type") != "apiKey":
                is_bearer = _is_bearer(scheme) or _is_oauth(scheme)
                headers["Authorization"] = f"{'Bearer' if is_bearer else scheme.get('scheme')} {{{field}}}"
            elif place == "query":
                query[wire] = f"{{{field}}}"
            elif place == "cookie":
                headers["Cookie"] = f"{wire}={{{field}}}"
            else:
                prefix = key_prefix(scheme)
                headers[wire] = f"{prefix}{{{field}}}"
                title = self._asked_for(title, wire, prefix)
            credentials[field] = {"description": title, "required": True, "secret": True}
        method: Method = {"title": "API key", "scheme": "api_key"}
        placed = {"headers": headers, "query": query}
        method |= {member: value for member, value in placed.items() if value}
        self.methods[_free(self.methods, name)] = {**method, "credentials": credentials}

    def _asked_for(self, title: str, header: str, prefix: str) -> str:
        """The description of a key that says whether a person gives it with its prefix, which is reported."""
        if prefix:
            self._report(Confidence.GUESSED, "the prefix of a key comes from its description", f"{header}: {prefix}…")
            return f"{title.rstrip('.')}; without {prefix.strip()}, which the gateway adds"
        if header.lower() != "authorization":
            return title
        self._report(Confidence.GUESSED, "a key in Authorization is asked for with its prefix", header)
        return f"{title.rstrip('.')}; the whole value of Authorization, with its prefix such as Bearer, if it has one"

    def _add_oauth(self, name: str, scheme: Node, scopes: Sequence[str]) -> None:
        flows = node_of(scheme.get("flows"))
        for unmapped in (flow for flow in flows if flow not in _GRANTS):
            self._report(
                Confidence.GUESSED, "an OAuth flow that the gateway does not support is left out", f"{name}: {unmapped}"
            )
        grants = [flow for flow in _GRANTS if node_of(flows.get(flow)).get("tokenUrl")]
        for flow in grants:
            endpoints = self._endpoints(node_of(flows[flow]), scopes)
            if self.oauth is not None and self.oauth["token_url"] != endpoints["token_url"]:
                self._report(
                    Confidence.NEEDS_PERSON, "a kind has one OAuth server; this one is left out", f"{name}: {flow}"
                )
                continue
            self.oauth = {**endpoints, **(self.oauth or {})}
            self.methods[_free(self.methods, f"{name}_{flow}" if len(flows) > 1 else name)] = oauth_method(flow)
        if not grants and flows:
            self.methods[_free(self.methods, name)] = bearer("OAuth access token")

    def _endpoints(self, flow: Node, scopes: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if flow.get("authorizationUrl"):
            found["authorization_url"] = self._url(flow["authorizationUrl"], "authorization_origin")
        found["token_url"] = self._url(flow["tokenUrl"])
        offered = [scope for scope in node_of(flow.get("scopes")) if "{" not in scope]
        wanted = [scope for scope in offered if scope in scopes] or offered
        if wanted:
            found["scopes"] = wanted
            self._report(
                Confidence.GUESSED, "the requested scopes", f"{len(wanted)}: remove those that you do not need"
            )
        return found

    def _url(self, url: object, variable: str = "token_origin") -> str:
        """An OAuth URL; its host is that of the server, one of the document, or a variable that a person must fill."""
        joined = urljoin(f"{self._address.example}/", str(url))
        if str(url).startswith("/") and self._address.server.startswith(f"{{{ORIGIN}}}"):
            return f"{{{ORIGIN}}}{url}"
        joined = re.sub(r"^http://", "https://", joined)
        for written in re.findall(r"{([^}]*)}", joined):
            answer = self._answers.get(written, self._answers.get(identifier(written)))
            joined = joined if answer is None else joined.replace(f"{{{written}}}", answer)
        if (reason := placeholder_of(joined)) is not None:
            raise ImportFailed(
                f"an OAuth URL of the document, {joined}: {reason}; correct it in an overlay (--overlay)"
            )
        if "{" in joined:
            found = with_variables(joined, {})
            self.hosts += found.hosts
            self.environment |= {name: each for name, each in found.environment.items() if not self._is_known(name)}
            return found.server
        return self._in_place_of(joined, variable)

    def _is_known(self, name: str) -> bool:
        return name in self._address.environment

    def _in_place_of(self, url: str, variable: str) -> str:
        """A URL with the variables by which a connector chooses its server, if the document's is only one choice."""
        host, environment = urlsplit(url).hostname or "", self._address.environment
        origin, rest = f"https://{host}", url.split("/", 3)[3:]
        if ORIGIN in environment and "*" not in self._address.hosts and host_matches(host, self._address.hosts):
            return "/".join([f"{{{ORIGIN}}}", *rest])
        for name, each in environment.items():
            values = str(each["description"]).rpartition(": ")[2].split(", ") if each.get("default") else []
            chosen = next((value for value in values if re.search(rf"(^|[.-]){re.escape(value)}([.-]|$)", host)), None)
            if chosen is not None and name != ORIGIN:
                parent = host.partition(chosen)[2]
                self.hosts += hosts_below(parent.strip(".")) or (host,)
                return url.replace(chosen, f"{{{name}}}", 1)
        if is_trial_host(url) and not is_trial_host(self._address.example):
            self.hosts += [host, *hosts_below(host.partition(".")[2])]
            description = f"URL without a path of the server that issues tokens; for trials {origin}"
            self.environment[variable] = {"description": description, "type": "origin", "example": origin}
            self._report(Confidence.GUESSED, "the host of an OAuth URL is one for trials, so it is a variable", url)
            return "/".join([f"{{{variable}}}", *rest])
        if variable == "token_origin":
            self.hosts.append(host)
        return url

    def _assume(self, operations: Sequence[SourceOperation]) -> None:
        """A method for a document without schemes: the secret headers of most operations, else a bearer token."""
        named = [
            {str(each["name"]) for each in operation.parameters if each.get("in") == "header"}
            for operation in operations
        ]
        headers = sorted(
            name
            for name in set().union(*named)
            if _SECRET_HEADER.search(name) and 2 * sum(name in each for each in named) > len(named)
        )
        if not headers:
            self._report(Confidence.NEEDS_PERSON, "the document has no security scheme; a bearer token is assumed")
            self.methods["token"] = bearer("")
            return
        reason = "the document has no security scheme; the secret headers of its operations are the credentials"
        self._report(Confidence.GUESSED, reason, ", ".join(headers))
        self._add_keys("api_key", {name: {"type": "apiKey", "in": "header", "name": name} for name in headers})

    def _report(self, confidence: Confidence, reason: str, detail: str = "") -> None:
        finding = Finding(confidence=confidence, place=_PLACE, reason=reason, detail=detail, member="authentication")
        if finding not in self.findings:
            self.findings.append(finding)


def _requirements(
    document: Document, operations: Sequence[SourceOperation], schemes: Sequence[str]
) -> list[tuple[str, ...]]:
    """Every set of schemes that the document or an operation names; without any, each scheme by itself."""
    listed = document.root.get("security")
    of_document = [tuple(map(str, node_of(each))) for each in listed] if isinstance(listed, list) else []
    found = [*of_document, *(tuple(needed) for operation in operations for needed in operation.security or ())]
    known = [needed for needed in found if needed and all(name in schemes for name in needed)]
    return list(dict.fromkeys(known)) or [(name,) for name in schemes]


def _scopes(document: Document, needed: Sequence[str]) -> list[str]:
    """The scopes that the document's `security` names for these schemes."""
    listed = document.root.get("security")
    found = [node_of(each).get(name) for each in (listed if isinstance(listed, list) else ()) for name in needed]
    return [str(scope) for scopes in found if isinstance(scopes, list) for scope in scopes]


def key_prefix(scheme: Node) -> str:
    """The prefix of a key in its header, from the scheme's description: `Token token=<API_KEY>`, `Bearer {token}`."""
    text = str(scheme.get("description") or "")
    if str(scheme.get("name", "")).lower() != "authorization":
        return ""
    shown = re.search(
        r"\b((?:Token|Bearer|Basic|ApiKey|Key|Api-Key|GenieKey|SSWS|OAuth|token)\s+(?:\w+=)?)[\"']?[<{\[$]", text
    )
    named = re.search(r"\b(Bearer)\b", text)
    return shown[1] if shown else "Bearer " if named else ""


def _is_bearer(scheme: Node) -> bool:
    return scheme.get("type") == "http" and str(scheme.get("scheme", "")).lower() == "bearer"


def _is_oauth(scheme: Node) -> bool:
    return scheme.get("type") in ("oauth2", "openIdConnect")


def bearer(title: str) -> Method:
    credentials = {"access_token": {"description": title or "access token", "required": True, "secret": True}}
    return {"title": "Bearer token", "scheme": "bearer", "token": "access_token", "credentials": credentials}


def basic(title: str) -> Method:
    credentials = {
        "username": {"description": title or "user name or key id", "required": True},
        "password": {"description": "password or secret", "required": True, "secret": True},
    }
    texts = {"username": "{username}", "password": "{password}"}
    return {"title": "User name and password", "scheme": "basic", **texts, "credentials": credentials}


def oauth_method(flow: str) -> Method:
    """The method of tokens from a grant of OpenAPI."""
    is_consent = flow == "authorizationCode"
    app = {
        "client_id": {"description": "client id of the OAuth app", "required": not is_consent},
        "client_secret": {"description": "client secret of that app", "required": not is_consent, "secret": True},
    }
    if not is_consent:
        method = {"title": "OAuth client credentials", "scheme": "bearer", "token": "access_token", "oauth": True}
        return {**method, "grant_type": "client_credentials", "credentials": app}
    tokens = {
        "refresh_token": {"description": "OAuth refresh token", "secret": True},
        "access_token": {"description": "OAuth access token", "secret": True},
    }
    return {
        "title": "OAuth",
        "scheme": "bearer",
        "token": "access_token",
        "oauth": True,
        "credentials": {**tokens, **app},
    }


def _free(methods: Mapping[str, Method], name: str) -> str:
    found, number = identifier(name) or "method", 2
    while found in methods:
        found, number = f"{identifier(name)}_{number}", number + 1
    return found
