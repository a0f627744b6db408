"""What is tested of every kind in the same way: its cases are tables, and `test_every_kind` runs them."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import msgspec
from yarl import URL

from gateway.errors import GatewayError
from gateway.kinds.members import FORM
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.responses import UpstreamResponse


@dataclass(frozen=True)
class Call:
    """An action, its params, and the one request that they make."""

    action: str
    params: Mapping[str, Any]
    #: below the application's address, or the whole URL where the request goes to another host
    path: str
    #: pairs where names repeat or their order counts
    query: Mapping[str, str] | Sequence[tuple[str, str]] = dataclasses.field(default_factory=dict)
    method: str = "GET"
    body: Any = None
    #: beside those of every request
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: why the SDK makes another request or none, see `test_sdk_requests`
    sdk_differs: str = ""
    #: of the body; a form is written as text, decoded: `name=Ada&items[0][price]=p_1`
    content_type: str = "application/json"

    def assert_sent_by(self, connector: UpstreamConnector, address: str, headers: Mapping[str, str]) -> None:
        """The connector makes this request and no other, at the application's address."""
        [shown] = connector.dry_run(*self.action.split("."), self.params)
        url = URL(shown["url"])
        query = dict(url.query) if isinstance(self.query, Mapping) else list(url.query.items())
        body = unquote_plus(shown["body"]) if self.content_type == FORM and shown["body"] else shown["body"]
        sent = (shown["method"], str(url.with_query(None)), query, body)
        address = "" if self.path.startswith("https://") else address
        assert sent == (self.method, f"{address}{self.path}", self.query, self.body)
        of_body = {} if self.body is None else {"Content-Type": self.content_type}
        methods = connector.kind.spec.authentication.values()
        secrets = {name: "***" for method in methods for name in method.header_names}
        usual = {"Accept": "application/json", **secrets, **headers}
        assert shown["headers"] == {**usual, **of_body, **self.headers}


@dataclass(frozen=True, eq=False)
class GraphQL:
    """The body of a GraphQL request: a document that holds a text, and these variables."""

    text: str
    variables: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        is_request = isinstance(other, dict) and other.keys() == {"query", "variables"}
        return is_request and self.text in other["query"] and other["variables"] == self.variables

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Refused:
    """Params that are never sent, the field that is wrong, and what the caller is told of it."""

    action: str
    params: Mapping[str, Any]
    field: str
    said: str
    #: fields that are wrong beside it
    others: Sequence[str] = ()


@dataclass(frozen=True)
class Answer:
    """What an application answers to an action, and what a caller gets of it."""

    action: str
    body: Any
    records: Any
    meta: Mapping[str, Any] | None


@dataclass(frozen=True)
class Failure:
    """What an application answers where it fails, the error that it means, and what is repeated of its words."""

    action: str
    status: int
    body: Any
    error: type[GatewayError]
    code: str | None = None
    message: str | None = None
    request_id: str | None = None
    field: str | None = None
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    retry_after: float | None = None


def google_failure(action: str, status: int, reason: str, error: type[GatewayError], **more: Any) -> Failure:
    """A failure as Google's applications report it."""
    body = {"code": status, "message": "no", "errors": [{"reason": reason, "message": "no", "domain": "global"}]}
    return Failure(action, status, {"error": body}, error, reason, "no", **more)


@dataclass(frozen=True)
class BadCredentials:
    """Credentials that are refused, the field that is wrong, and what the caller is told of it."""

    credentials: Mapping[str, str]
    field: str
    said: str = ""


@dataclass(frozen=True)
class Pages:
    """Answers of an application page by page, what is read of them, and the addresses that are asked for."""

    action: str
    params: Mapping[str, Any]
    answers: Sequence[Any]
    records: Sequence[Any]
    asked: Sequence[str]
    #: the bodies of the requests
    sent: Sequence[Any] = ()
    #: the headers of the answers, where they have any
    headers: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True)
class Cases:
    """The tables of a kind."""

    kind: str
    address: str
    calls: Sequence[Call]
    refused: Sequence[Refused]
    failures: Sequence[Failure]
    #: credentials and the header that they become, for each method
    authorizations: Sequence[tuple[Mapping[str, str], str]]
    #: the address of the health check, and an answer to it
    check: tuple[str, Any]
    pages: Sequence[Pages] = ()
    answers: Sequence[Answer] = ()
    bad_credentials: Sequence[BadCredentials] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: those that every request has
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


def all_cases() -> list[Cases]:
    """The tables of all kinds, one module of `tables` each."""
    names = sorted(path.stem for path in (Path(__file__).parent / "tables").glob("*.py"))
    return [import_module(f"tests.upstream.kinds.tables.{name}").CASES for name in names]


def response(status: int, headers: Mapping[str, str], body: Any) -> UpstreamResponse:
    """An answer; `bytes` are as they are, anything else is JSON."""
    return UpstreamResponse(status, headers, body if isinstance(body, bytes) else msgspec.json.encode(body))
