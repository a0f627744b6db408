"""The actions of an operation's further requests, made from its own action."""

import re
from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

from gateway.contract.kinds import Effect
from gateway.kinds.bulk import ITEMS
from gateway.kinds.long_running import FollowUp, ResultRequest, TaskMethod
from gateway.kinds.members import JsonPath, JsonSchema
from gateway.kinds.paging import Order
from gateway.kinds.requests import Action, Alternative, Columns
from gateway.kinds.spec import ConnectorSpec
from gateway.kinds.upload_session import UploadSession


class _Request(TypedDict):
    """The members of a `FollowUp`."""

    request: str
    headers: dict[str, str]
    constant_query: dict[str, str | tuple[str, ...]]
    content_type: str | None
    constant_body: dict[str, Any]
    request_body: str | None
    task: TaskMethod | None


class ActionChange(TypedDict, total=False):
    """Members of an action that a sibling has otherwise."""

    request: str
    headers: dict[str, str]
    constant_query: dict[str, str | tuple[str, ...]]
    content_type: str | None
    constant_body: dict[str, Any]
    request_body: str | None
    task: TaskMethod | None
    tool: str | None
    output_schema: JsonSchema | None
    params: dict[str, JsonSchema]
    required: tuple[str, ...]
    effect: Effect
    write_if: JsonPath | None
    graphql: str | None
    rule: str | None
    alternatives: tuple[Alternative, ...]
    record: JsonPath | None
    records: JsonPath | None
    columns: Columns | None
    paging: str | None
    order: Order | None
    download: None
    upload_session: None
    bulk: None


def changed(action: Action, **members: Unpack[ActionChange]) -> Action:
    """The action with other members."""
    return action.model_copy(update=members)


def alternative_of(action: Action, how: Alternative) -> Action:
    """The request that replaces the action's own if a param is left out."""
    return changed(action, request=how.request, paging=how.paging, order=None, alternatives=())


def start_of(action: Action) -> Action:
    """The request that starts a long operation; the whole response is its record."""
    how, start = action.long_running, _whole(action)
    if how is None:
        return start
    if how.upload is not None and how.upload.request_body is not None:
        params = {name: schema for name, schema in action.params.items() if name != how.upload.request_body}
        start = changed(start, params=params)
    if how.start is not None and how.start.request is not None:
        start = changed(start, request=how.start.request)
    if how.close is not None:  # before `close` the application does nothing, so that the start may be repeated
        start = changed(start, effect=Effect.READ, write_if=None)
    return start


def upload_start_of(action: Action, spec: ConnectorSpec, file: str, how: UploadSession) -> Action:
    """The request that opens the upload session for the param `file`, without it; the whole response is its record.

    Only the last piece of the file makes a record, so that the session may be opened twice.
    """
    type_param = action.param_in(resolved(action.params[file], spec).get("contentMediaType"))
    elsewhere = {file, type_param, *how.constant_query}
    params = {name: schema for name, schema in action.params.items() if name not in elsewhere}
    return changed(_whole(action), **_request(how), params=params, required=(), effect=Effect.READ, upload_session=None)


def follow_up_of(action: Action, spec: ConnectorSpec, how: FollowUp) -> Action:
    """A further request, made once, with the params that its path and `request_body` name."""
    names = [*re.findall(r"{(\w+)}", how.request), *([how.request_body] if how.request_body else [])]
    params = {name: action.params.get(name, {}) for name in names}
    records, paging = None, None
    if isinstance(how, ResultRequest) and how.paging is not None:
        records, paging = how.records, how.paging
        style = spec.paging[paging]
        params |= {name: {"in": "text" if name in style.carried else "query"} for name in style.request_params}
    return changed(
        action,
        **_request(how),
        params=params,
        required=(),
        effect=Effect.READ,
        write_if=None,
        graphql=None,
        tool=None,
        output_schema=None,
        rule=None,
        alternatives=(),
        record=() if records is None else None,
        records=records,
        columns=None if records is None else action.columns,
        paging=paging,
    )


def bulk_of(action: Action) -> Action | None:
    """The request that replaces many calls of the action; its param `ITEMS` is the list of their items."""
    how = action.bulk
    if how is None:
        return None
    params = {name: action.params[name] for name in re.findall(r"{(\w+)}", how.request)}
    params |= {name: {**action.params[name], **schema} for name, schema in how.params.items()}
    return changed(
        action,
        **_request(how),
        params={**params, ITEMS: how.items},
        required=(),
        bulk=None,
        record=None,
        records=how.records,
    )


def file_description_of(action: Action) -> Action | None:
    """The request that reads the record of a download's file; None if the application has none."""
    how = action.download
    request = None if how is None else how.metadata_request or (action.request if how.url else None)
    return None if request is None else changed(action, request=request, record=(), download=None)


def resolved(schema: Mapping[str, Any], spec: ConnectorSpec) -> Mapping[str, Any]:
    """A schema with the definition that it refers to."""
    if "$ref" not in schema:
        return schema
    return {**spec.definitions[schema["$ref"].removeprefix("#/$defs/")], **schema}


def _whole(action: Action) -> Action:
    """The action if the whole response is its record."""
    return changed(action, record=(), records=None, columns=None, paging=None, output_schema=None)


def _request(how: FollowUp) -> _Request:
    return _Request(
        request=how.request,
        headers=how.headers,
        constant_query=how.constant_query,
        content_type=how.content_type,
        constant_body=how.constant_body,
        request_body=how.request_body,
        task=how.task,
    )
