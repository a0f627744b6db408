"""Maps security schemes to authentication methods: pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

from gateway.kinds.importing.model import Confidence, Finding, Node, SourceOperation
from gateway.kinds.importing.references import Document, node_of
from gateway.kinds.importing.words import identifier, plain

Method = dict[str, Any]
_PLACE = "the document"
_GRANTS = ("authorizationCode", "clientCredentials")


class Authentication:
    """The methods of a document, its OAuth endpoints, and the findings for a person."""

    def __init__(self, document: Document, operations: Sequence[SourceOperation], server: str) -> None:
        self._schemes = {
            str(name): document.resolved(each)
            for name, each in node_of(node_of(document.root.get("components")).get("securitySchemes")).items()
        }
        self._server = server
        self.methods: dict[str, Method] = {}
        self.oauth: dict[str, Any] | None = None
        self.findings: list[Finding] = []
        for needed in _requirements(document, operations, list(self._schemes)):
            self._add(needed, _scopes(document, needed))
        if not self.methods:
            self._assume_bearer()

    def _add(self, needed: Sequence[str], scopes: Sequence[str]) -> None:
        schemes = {name: self._schemes.get(name, {}) for name in needed}
        if len(schemes) == 1:
            [(name, scheme)] = schemes.items()
            self._add_one(name, scheme, scopes)
        elif all(scheme.get("type") == "apiKey" or _is_bearer(scheme) for scheme in schemes.values()):
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
        else:
            self._report(Confidence.NEEDS_PERSON, f"the security scheme {kind} is not mapped", name)

    def _add_keys(self, name: str, schemes: Mapping[str, Node]) -> None:
        headers, query, credentials = {}, {}, {}
        for key, scheme in schemes.items():
            field = identifier(key) or "api_key"
            title = plain(scheme.get("description"), 120) or f"{key} of the application"
            credentials[field] = {"description": title, "required": True, "secret": True}
            place, wire = scheme.get("in", "header"), str(scheme.get("name", "Authorization"))
            if scheme.get("type") == "http":
                prefix = "Bearer " if _is_bearer(scheme) else f"{scheme.get('scheme')} "
                headers["Authorization"] = f"{prefix}{{{field}}}"
            elif place == "query":
                query[wire] = f"{{{field}}}"
            elif place == "cookie":
                headers["Cookie"] = f"{wire}={{{field}}}"
            else:
                prefix = key_prefix(scheme)
                if prefix:
                    self._report(
                        Confidence.GUESSED, "the prefix of a key comes from its description", f"{wire}: {prefix}…"
                    )
                headers[wire] = f"{prefix}{{{field}}}"
        method: Method = {"title": "API key", "scheme": "api_key"}
        placed = {"headers": headers, "query": query}
        method |= {member: value for member, value in placed.items() if value}
        self.methods[_free(self.methods, name)] = {**method, "credentials": credentials}

    def _add_oauth(self, name: str, scheme: Node, scopes: Sequence[str]) -> None:
        flows = node_of(scheme.get("flows"))
        for unmapped in (flow for flow in flows if flow not in _GRANTS):
            self._report(
                Confidence.GUESSED, "an OAuth flow that the gateway does not support is left out", f"{name}: {unmapped}"
            )
        for flow in _GRANTS:
            details = node_of(flows.get(flow))
            if not details.get("tokenUrl"):
                continue
            endpoints = self._endpoints(details, scopes)
            if self.oauth is not None and self.oauth["token_url"] != endpoints["token_url"]:
                self._report(
                    Confidence.NEEDS_PERSON, "a kind has one OAuth server; this one is left out", f"{name}: {flow}"
                )
                continue
            self.oauth = {**endpoints, **(self.oauth or {})}
            self.methods[_free(self.methods, f"{name}_{flow}" if len(flows) > 1 else name)] = _oauth_method(flow)

    def _endpoints(self, flow: Node, scopes: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if flow.get("authorizationUrl"):
            found["authorization_url"] = self._url(flow["authorizationUrl"])
        found["token_url"] = self._url(flow["tokenUrl"])
        offered = list(node_of(flow.get("scopes")))
        wanted = [scope for scope in offered if scope in scopes] or offered
        if wanted:
            found["scopes"] = wanted
            self._report(
                Confidence.GUESSED, "the requested scopes", f"{len(wanted)}: remove those that you do not need"
            )
        return found

    def _url(self, url: object) -> str:
        joined = urljoin(f"{self._server}/", str(url))
        return joined.replace("http://", "https://", 1) if joined.startswith("http://") else joined

    def _assume_bearer(self) -> None:
        self._report(Confidence.NEEDS_PERSON, "the document has no security scheme; a bearer token is assumed")
        self.methods["token"] = bearer("")

    def _report(self, confidence: Confidence, reason: str, detail: str = "") -> None:
        finding = Finding(confidence=confidence, place=_PLACE, reason=reason, detail=detail, member="authentication")
        if finding not in self.findings:
            self.findings.append(finding)

    @property
    def hosts(self) -> list[str]:
        """Hosts that receive credentials, in addition to those of the servers."""
        return [host] if self.oauth and (host := urlsplit(self.oauth["token_url"]).hostname) else []


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


def _oauth_method(flow: str) -> Method:
    is_consent = flow == "authorizationCode"
    app = {
        "client_id": {"description": "client id of the OAuth app", "required": not is_consent},
        "client_secret": {"description": "client secret of that app", "required": not is_consent, "secret": True},
    }
    if not is_consent:
        method = {"title": "OAuth client credentials", "scheme": "bearer", "oauth": True}
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
