"""An application of the sandbox: it answers the operations of its spec. Behaviour of single kinds is in `kinds`."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import jsonschema_rs
import msgspec
from yarl import URL

from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.placements import json_schema, put
from gateway.sandbox import paging
from gateway.sandbox.bulk import bulk_handler
from gateway.sandbox.calls import Call, FileReply, Handler, Refusal, Reply
from gateway.sandbox.choice import chosen
from gateway.sandbox.credentials import presented
from gateway.sandbox.grants import Grants
from gateway.sandbox.long_jobs import LongJobs
from gateway.sandbox.oauth import AuthorizationServer, TokenStyle
from gateway.sandbox.operations import Operations
from gateway.sandbox.signed_grants import SignedGrant
from gateway.sandbox.upload_sessions import UploadSessions

#: the request id in every error response
_REQUEST_ID = "sandbox-request"
#: maximum encoded list responses that are cached until the next write
_CACHED_ANSWERS = 256


@dataclass(frozen=True, slots=True)
class Route:
    """One method and path of an application, and its handler."""

    method: str
    path: str
    handler: Handler
    #: the operations of the spec that use it
    operations: tuple[Operation, ...] = ()
    #: whether the response depends only on the URL and the state
    is_cacheable: bool = False
    #: whether callers need no credentials
    is_open: bool = False


class Application(Operations):
    """The stand-in for one kind; lists, gets and writes follow the spec."""

    #: status → the application's error code for a refusal without a code
    codes: ClassVar[Mapping[int, str]] = {}
    #: headers of every response
    standing_headers: ClassVar[Mapping[str, str]] = {}
    #: how the kind's authorization server issues tokens
    tokens: ClassVar[TokenStyle] = TokenStyle()

    def __init__(self, kind: Kind, *, seed: int = 0, scale: float = 1, job_seconds: float = 1.0) -> None:
        super().__init__(kind, seed, scale)
        self.job_seconds = job_seconds
        self.grants = Grants()
        self.long_jobs = LongJobs(self, job_seconds)
        self.upload_sessions = UploadSessions(self)
        self._cache: dict[str, Reply] = {}
        self._checks: dict[str, jsonschema_rs.Draft202012Validator] = {}

    @property
    def prefix(self) -> str:
        """The prefix of all paths of the kind, except those of operations with their own server."""
        return self._path_of(self.kind.spec.server)

    def _path_of(self, server: str) -> str:
        variables = {
            name: "https://sandbox.invalid" if variable.type == "origin" else "sandbox"
            for name, variable in self.kind.spec.environment.items()
        }
        return URL(server.format_map(variables)).path.rstrip("/")

    def reset(self) -> None:
        """Restore the initial records, and discard tokens, long operations and upload sessions."""
        self.store.reset()
        self.grants.reset()
        self.long_jobs.reset()
        self.upload_sessions.reset()
        self._cache.clear()

    def refused(self, refusal: Refusal) -> Reply:
        """An error response in the format of the spec's `failure`, with the application's code and message."""
        failure = self.kind.spec.failure
        code = refusal.code or self.codes.get(refusal.status) or f"error_{refusal.status}"
        message = refusal.message or code.replace("_", " ").lower()
        parts = ((failure.message, message), (failure.code, code), (failure.request_id, _REQUEST_ID))
        named = {places[0]: text for places, text in parts if places}
        is_list = any(place[0].isdigit() for place in named)
        document: Any = [] if is_list else {} if failure.ok is None else {failure.ok: False}
        for place, text in named.items():
            put(document, place, text)
        usual = {"Retry-After": "1"} if refusal.status == 429 else {}
        return Reply(document, refusal.status, {**usual, **refusal.headers})

    # The steps of a call

    def answer(self, route: Route, call: Call) -> Reply | FileReply:
        """Check credentials, the kind's own conditions and the body, then call the handler.

        Every refusal has the error format of the application.
        """
        try:
            if not route.is_open:
                self.authorize(call)
                self.admit(call)
            self.advance(call.now)
            self.check(route, call)
            return self._with_standing_headers(self._answered(route, call))
        except Refusal as refusal:
            return self.refused(refusal)
        except paging.BadPage as bad:
            return self.refused(Refusal(400, message=str(bad)))

    def _with_standing_headers(self, reply: Reply | FileReply) -> Reply | FileReply:
        if not self.standing_headers or isinstance(reply, FileReply):
            return reply
        return replace(reply, headers={**self.standing_headers, **reply.headers})

    def _answered(self, route: Route, call: Call) -> Reply | FileReply:
        if not route.is_cacheable:
            if call.method not in ("GET", "HEAD"):
                self.invalidate_cache()
            return route.handler(call)
        key = paging.address(call)
        if key not in self._cache:
            reply = route.handler(call)
            if not isinstance(reply, Reply):
                return reply
            if len(self._cache) >= _CACHED_ANSWERS:
                self._cache.clear()
            self._cache[key] = replace(reply, body=msgspec.json.encode(reply.body))
        return self._cache[key]

    def invalidate_cache(self) -> None:
        """Discard the cached list responses, because the state has changed."""
        self._cache.clear()

    def authorize(self, call: Call) -> None:
        """Accept any token that is not empty, does not begin with `bad`, and is not revoked, replaced or expired."""
        given = [found for method in self.kind.spec.authentication.values() if (found := presented(method, call))]
        if not given:
            raise Refusal(401, message="no credentials")
        if not any(self._are_valid(secrets, call.now) for secrets in given):
            raise Refusal(401, message="bad credentials")

    def _are_valid(self, secrets: Sequence[str], now: float) -> bool:
        return all(secret and not secret.startswith("bad") and self.grants.is_valid(secret, now) for secret in secrets)

    def admit(self, call: Call) -> None:
        """Check the further requirements of the application for every call, such as a version header."""

    def advance(self, now: float) -> None:
        """Continue the long operations up to this time."""
        if self.long_jobs.advance(now):
            self.invalidate_cache()

    def check(self, route: Route, call: Call) -> None:
        """Refuse a JSON body that is invalid for all of the route's operations."""
        if not call.is_json or not route.operations or call.method in ("GET", "HEAD", "DELETE"):
            return
        found = [self._faults(operation, call.body) for operation in route.operations]
        if all(found):
            raise self.bad_body(found[0])

    def bad_body(self, faults: list[str]) -> Refusal:
        return Refusal(400, message="; ".join(faults))

    def _faults(self, operation: Operation, body: Mapping[str, Any]) -> list[str]:
        validator = self._checks.get(str(operation))
        if validator is None:
            validator = self._checks[str(operation)] = jsonschema_rs.Draft202012Validator(body_schema(operation))
        return [
            f"{'.'.join(str(part) for part in error.instance_path) or 'body'}: {error.message}"
            for error in validator.iter_errors(dict(body))
        ]

    # Routes

    def routes(self) -> list[Route]:
        """A route for every request line of the spec, including alternatives, and those that the kind adds."""
        by_address: dict[tuple[str | None, str], list[tuple[str, Operation]]] = {}
        for operation in self.operations():
            for line in (operation.action.request, *(other.request for other in operation.action.alternatives)):
                line = line.partition("?")[0]
                by_address.setdefault((operation.action.server, self.shape_of(line)), []).append((line, operation))
        special = {**self.long_jobs.handlers(), **self.upload_sessions.handlers(), **self.handlers()}
        special |= self._bulk_handlers(special, {shape for _, shape in by_address})
        found = []
        for lines in by_address.values():
            [line, *_], operations = zip(*lines, strict=True)
            found += self._routes_of(line, operations, special.pop(line, None))
        for line, handler in special.items():
            found += self._routes_of(line, (), handler)
        return [*found, *self.files(), *self._authorization()]

    def _bulk_handlers(self, special: Mapping[str, Handler], known: Collection[str]) -> dict[str, Handler]:
        """Handlers of bulk requests by request line, without those of lines that an operation of the spec has too."""
        found = {}
        for operation in self.kind.operations.values():
            how, line = operation.action.bulk, operation.action.request
            if how is not None and self.shape_of(how.request) not in known:
                own = special.get(line) or self._usual(operation.method, operation)
                found[how.request] = bulk_handler(self, operation, own)
        return found

    def operations(self) -> Iterable[Operation]:
        """The operations that callers may request; a long operation is represented by the request that starts it."""
        for operation in self.kind.operations.values():
            how = operation.action.long_running
            is_other = how is None or (how.start is not None and how.start.request is not None)
            yield operation if is_other else operation.start

    def shape_of(self, line: str) -> str:
        """The key of a request line: lines with the same key are one route. By default each line is its own route."""
        return line

    def list_of(self, lists: Sequence[Operation], call: Call) -> Operation | None:
        """The list that a call reads, among several with the same request line."""
        return chosen(lists, call)

    def handlers(self) -> dict[str, Handler]:
        """The kind's own handlers by request line, for operations of the spec and for other requests."""
        return {}

    def token_style(self) -> TokenStyle:
        """How the kind's authorization server issues tokens."""
        return self.tokens

    def files(self) -> list[Route]:
        """The routes of files that need no credentials."""
        return []

    def _authorization(self) -> list[Route]:
        """The routes of the OAuth URLs of the spec."""
        endpoints = self.kind.spec.oauth
        if endpoints is None:
            return []
        methods = self.kind.spec.authentication.values()
        signed = [SignedGrant(method.assertion, endpoints) for method in methods if method.assertion is not None]
        server = AuthorizationServer(
            self.kind.spec.title,
            self.token_style(),
            self.grants,
            has_client_grant=any(method.grant_type == "client_credentials" for method in methods),
            signed_grant=next(iter(signed), None),
        )
        variables = dict.fromkeys(self.kind.spec.environment, "sandbox")

        def route(method: str, url: str, handler: Handler, *, is_open: bool = True) -> Route:
            return Route(method, URL(url.format_map(variables)).path, handler, is_open=is_open)

        found = [route("POST", endpoints.token_url, server.token)]
        if endpoints.authorization_url:
            found.append(route("GET", endpoints.authorization_url, server.consent_page))
            found.append(route("POST", endpoints.authorization_url, server.decide))
        if endpoints.revocation_url is not None:
            is_open = endpoints.revocation_style != "bearer"
            found.append(route(endpoints.revocation_method, endpoints.revocation_url, server.revoke, is_open=is_open))
        return found

    def _routes_of(self, line: str, operations: tuple[Operation, ...], special: Handler | None) -> list[Route]:
        """The routes of a request line, one for each server that connectors may have."""
        if special is None and any(operation.action.long_running for operation in operations):
            special = partial(self.long_jobs.start, operations)
        addresses = self.addresses_of(line, operations[0] if operations else None)
        method = addresses[0][0]
        handler = special or self._usual(method, operations[0])
        is_cacheable = special is None and method == "GET" and operations[0].is_list
        return [Route(method, path, handler, operations, is_cacheable) for _, path in addresses]

    def addresses_of(self, line: str, operation: Operation | None) -> list[tuple[str, str]]:
        """The method and the path of a request line, one for each server that connectors may have."""
        method, path = line.partition("?")[0].split(" ", 1)
        server = None if operation is None else operation.action.server
        servers = [self.kind.spec.server, *self.kind.spec.server_with.values()] if server is None else [server]
        path = self.kind.spec.current_path(path)
        return [(method, prefix + path) for prefix in dict.fromkeys(self._path_of(each) for each in servers)]

    def _usual(self, method: str, operation: Operation) -> Handler:
        """The handler of an operation in an application without own behaviour."""
        if operation.action.long_running is not None:
            return partial(self.long_jobs.start, (operation,))
        usual: Mapping[str, Callable[[Operation, Call], Reply]] = {
            "POST": self.create_record,
            "PUT": self.update_record,
            "PATCH": self.update_record,
            "DELETE": self.delete_record,
        }
        reading = self.list_records if operation.is_list else self.get_record
        chosen = usual.get(method, reading)
        return lambda call: chosen(operation, call)


def body_schema(operation: Operation) -> dict[str, Any]:
    """The JSON Schema of the operation's body, with the application's names."""
    if operation.action.request_body is not None:
        return {}
    placed = [placement for placement in operation.placements if placement.where == "body"]
    schemas = operation.action.params
    return {
        "type": "object",
        "properties": {
            # A text with other params in it replaces the value.
            placement.wire: {"type": "string"}
            if placement.text
            else _traced(operation, placement.name, schemas[placement.name])
            for placement in placed
            if "." not in placement.wire
        },
        "required": sorted(
            {placement.wire.partition(".")[0] for placement in placed if placement.name in operation.action.required}
        ),
        "$defs": operation.spec.definitions,
    }


def _traced(operation: Operation, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a param as it is sent: the gateway adds a number to the items of some long operations (`trace`)."""
    how = operation.action.long_running
    plain = json_schema(schema)
    if (
        how is None
        or how.split is None
        or how.split.param != name
        or not (how.results.items and how.results.items.trace)
    ):
        return plain
    items = plain["items"]
    return {**plain, "items": {**items, "properties": {**items["properties"], how.results.items.trace: {}}}}
