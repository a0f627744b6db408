"""Requests of the engine compared with those that the installed SDK sends to the application itself.

The cases are the calls of the wire tables, of every kind that has the SDK's name. The SDK runs a call in its local mode
with the first credentials of `authorizations`; an HTTP client in place of its own records the request. The engine shows
its request by a dry run. Method, path, query and body are compared, queries and forms without their order. A GraphQL
document of the engine must select every field that the SDK's document selects, with the same arguments.

A call is compared if the SDK's operation has all of its params; the defaults of the engine are given to the SDK too.
Every operation of the SDK needs a call that is compared. Where the SDK is wrong, `sdk_differs` of the `Call` says why,
and the test then requires that the requests differ.
"""

import re
from collections.abc import Iterator, Mapping
from email import message_from_bytes, policy
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import graphql
import msgspec
import pytest

from tests.upstream.kinds.cases import Call, Cases, all_cases
from tests.upstream.kinds.conftest import kind_named

#: kinds that have another name in the SDK; they were made from their applications' documents alone
UNCOMPARED = {
    *("support-desk", "crm-records", "crm-query", "workspace-notes", "team-chat"),
    *("work-management", "incident-management"),
}
COMPARED = [cases for cases in all_cases() if cases.kind not in UNCOMPARED]
#: the SDK's name of an action of ours
SDK_ACTIONS = {"api_search": "search"}


class Recorder:
    """An HTTP client for the SDK that keeps the first request and sends none."""

    def __init__(self) -> None:
        self.sent: dict[str, Any] | None = None

    async def request(self, method: str, url: str, *, stream: bool = False, **parts: Any) -> None:
        import httpx

        request = httpx.Request(method, url, **parts)
        content_type = request.headers.get("content-type", "")
        self.sent = self.sent or comparable(method, str(request.url), content_type, request.read())
        raise NotImplementedError("the request is recorded")

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.fixture(autouse=True)
def silent_sdk(monkeypatch):
    pytest.importorskip(
        "airbyte_agent_sdk", reason="airbyte-agent-sdk is not installed; it is a development dependency"
    )
    monkeypatch.setenv("AIRBYTE_TELEMETRY_MODE", "disabled")


@cache
def model_of(kind: str) -> Any:
    """The SDK's description of a kind."""
    from airbyte_agent_sdk.types import ConnectorModel

    module = import_module(f"airbyte_agent_sdk.connectors.{kind.replace('-', '_')}.connector_model")
    return next(value for value in vars(module).values() if isinstance(value, ConnectorModel))


@cache
def endpoints_of(kind: str) -> Mapping[str, Any]:
    """The SDK's operations by our names of them."""
    ours = {theirs: name for name, theirs in SDK_ACTIONS.items()}
    return {
        f"{entity.name}.{ours.get(action.value, action.value)}": endpoint
        for entity in model_of(kind).entities
        for action, endpoint in entity.endpoints.items()
    }


def is_compared(kind: str, call: Call) -> bool:
    """Whether the SDK has the operation with all params of the call."""
    return call.action in endpoints_of(kind) and all(is_known(kind, call, name) for name in call.params)


def is_known(kind: str, call: Call, name: str) -> bool:
    """Whether the SDK's operation has a param."""
    endpoint = endpoints_of(kind)[call.action]
    known = {*endpoint.query_params, *endpoint.path_params, *endpoint.header_params, *endpoint.body_fields}
    if endpoint.graphql_body is not None:
        known |= set(re.findall(r"{{ (\w+) }}", str(endpoint.graphql_body)))
    return bool({"*", name} & known)


def params_for_sdk(cases: Cases, call: Call) -> dict[str, Any]:
    """The params of a call with those defaults that the SDK's operation could have, their variables filled in."""
    schemas = kind_named(cases.kind).operation(*call.action.split(".")).action.params
    defaults = {name: schema["default"] for name, schema in schemas.items() if "default" in schema}
    defaults = {name: value for name, value in defaults.items() if is_known(cases.kind, call, name)}
    variables = {f"{{{name}}}": value for name, value in cases.environment.items()}
    filled = {
        name: variables.get(value, value) if isinstance(value, str) else value for name, value in defaults.items()
    }
    return {**filled, **call.params}


async def sent_by_sdk(cases: Cases, call: Call) -> Any:
    """The request of the SDK, or its words if it refuses the call."""
    from airbyte_agent_sdk.executor.local_executor import LocalExecutor
    from airbyte_agent_sdk.secrets import SecretStr

    credentials = {name: SecretStr(value) for name, value in cases.authorizations[0][0].items()}
    options = {"auth_config": credentials, "config_values": dict(cases.environment)}
    recorder, words = Recorder(), ""
    entity, action = call.action.split(".")
    try:
        executor = LocalExecutor(model=model_of(cases.kind), client=recorder, **options)
        # Where its credentials have no access token, the SDK would fetch one first.
        executor.http_client.secrets.setdefault("access_token", credentials.get("access_token"))
        result = await executor.execute(entity, SDK_ACTIONS.get(action, action), params=params_for_sdk(cases, call))
        words = result.error
        if result.success:  # a download is sent when it is read
            await anext(aiter(result.data))
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
    return recorder.sent or words


def shown_by_engine(connector: Any, call: Call) -> Any:
    shown = connector.dry_run(*call.action.split("."), call.params)[0]
    body = shown["body"]
    raw = b"" if body is None else body.encode() if isinstance(body, str) else msgspec.json.encode(body)
    return comparable(shown["method"], shown["url"], shown["headers"].get("Content-Type", ""), raw)


def comparable(method: str, url: str, content_type: str, body: bytes) -> dict[str, Any]:
    """A request without what may differ in writing: escapes, the order of a query, boundaries, spaces of JSON."""
    address = urlsplit(url)
    path = [quote(unquote(segment), safe="") for segment in address.path.split("/")]
    members = _members(content_type, body)
    # The SDK repeats the variables of a GraphQL query in the URL, where no application reads them.
    is_graphql = isinstance(members, dict) and "graphql" in members
    return {
        "method": method,
        "address": f"{address.scheme}://{address.netloc}{'/'.join(path)}",
        "query": [] if is_graphql else sorted(parse_qsl(address.query, keep_blank_values=True)),
        "body": members,
    }


def _members(content_type: str, body: bytes) -> Any:
    if not body:
        return None
    if content_type.startswith("multipart/"):
        whole = message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body, policy=policy.HTTP)
        return [_members(part.get_content_type(), part.get_payload(decode=True)) for part in whole.iter_parts()]
    if content_type.startswith("application/x-www-form-urlencoded"):
        return sorted(parse_qsl(body.decode(), keep_blank_values=True))
    if "json" not in content_type:
        return body
    members = msgspec.json.decode(body)
    if isinstance(members, dict) and isinstance(members.get("query"), str) and "{" in members["query"]:
        return {"graphql": dict(selected(members["query"], members.get("variables") or {}))}
    return members


def selected(document: str, variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The path of each field that a document selects, and its arguments with the variables filled in."""
    parsed = graphql.parse(document)
    fragments = {each.name.value: each for each in parsed.definitions if hasattr(each, "type_condition")}
    [operation] = [each for each in parsed.definitions if isinstance(each, graphql.OperationDefinitionNode)]
    defaults = {
        each.variable.name.value: graphql.value_from_ast_untyped(each.default_value)
        for each in operation.variable_definitions or ()
        if each.default_value is not None
    }

    def walk(node: Any, path: str) -> Iterator[tuple[str, Any]]:
        for child in node.selection_set.selections if node.selection_set else ():
            if isinstance(child, graphql.FieldNode):
                place = f"{path}.{child.alias.value + ':' if child.alias else ''}{child.name.value}"
                arguments = {each.name.value: each.value for each in child.arguments or ()}
                yield place, _filled(arguments, {**defaults, **variables})
                yield from walk(child, place)
            elif isinstance(child, graphql.FragmentSpreadNode):
                yield from walk(fragments[child.name.value], path)
            else:
                condition = child.type_condition
                yield from walk(child, f"{path}.on {condition.name.value}" if condition else path)

    return walk(operation, operation.operation.value)


def _filled(arguments: Mapping[str, Any], variables: Mapping[str, Any]) -> Any:
    """The values of arguments."""
    values = {name: graphql.value_from_ast_untyped(node, dict(variables)) for name, node in arguments.items()}
    return _without_unset(values)


def _without_unset(value: Any) -> Any:
    """An argument without variables that have no value: GraphQL leaves them out."""
    if isinstance(value, dict):
        return {name: _without_unset(inner) for name, inner in value.items() if inner is not graphql.Undefined}
    return [_without_unset(inner) for inner in value] if isinstance(value, list) else value


def without_more_fields(ours: dict[str, Any], theirs: Any) -> dict[str, Any]:
    """Our request with only those GraphQL fields that the SDK selects too."""
    if isinstance(theirs, str) or not all(isinstance(each["body"], dict) for each in (ours, theirs)):
        return ours
    wanted = theirs["body"].get("graphql", {})
    fields = {place: arguments for place, arguments in ours["body"].get("graphql", {}).items() if place in wanted}
    return {**ours, "body": {"graphql": fields}} if wanted else ours


each_kind = pytest.mark.parametrize("cases", COMPARED, ids=lambda cases: cases.kind)


@each_kind
def test_every_operation_of_the_sdk_is_compared(cases: Cases):
    compared = {call.action for call in cases.calls if is_compared(cases.kind, call)}

    assert endpoints_of(cases.kind).keys() - compared == set()


@each_kind
async def test_the_sdk_makes_the_same_request(subtests, offline, cases: Cases):
    connector = offline(cases.kind, **cases.environment)
    for call in cases.calls:
        with subtests.test(call.action, params=call.params):
            if not is_compared(cases.kind, call):
                assert not call.sdk_differs, "the SDK has no such operation or param"
                continue

            theirs = await sent_by_sdk(cases, call)
            ours = without_more_fields(shown_by_engine(connector, call), theirs)

            if call.sdk_differs:
                assert ours != theirs, f"the requests are equal now; remove: {call.sdk_differs}"
            else:
                assert ours == theirs
