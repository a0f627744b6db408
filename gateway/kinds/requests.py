"""Models of an entity's actions: the requests that they send, their params, and what a write changes."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from gateway.contract.kinds import Effect
from gateway.kinds.bulk import Bulk
from gateway.kinds.long_running import LongRunning, TaskMethod
from gateway.kinds.members import (
    CheckedModel,
    ContentType,
    Identifier,
    JsonPath,
    JsonSchema,
    Model,
    Phrases,
    RequestLine,
)
from gateway.kinds.paging import Order
from gateway.kinds.upload_session import UploadSession

#: `fragment` selects fields in a GraphQL document; `text` is for params that are sent only in the `text` of others
_LOCATIONS = ("path", "query", "body", "header", "fragment", "text")


#: the param that names the part of a file, for callers that cannot set the header
_RANGE_HEADER = {
    "type": "string",
    "in": "header",
    "as": "Range",
    "description": "the part of the file wanted, such as bytes=0-1023",
}


def _is_range(name: str, schema: Any) -> bool:
    named = schema.get("as", name) if isinstance(schema, dict) and schema.get("in") == "header" else name
    return name == "range_header" or (isinstance(named, str) and named.lower() == "range")


class ParamStyle(StrEnum):
    """How a list or an object is written in a query or a form, mostly in OpenAPI's words; `explode` is true by
    default."""

    #: `a=1&a=2`, or `a=1,2` if `explode` is false
    FORM = "form"
    #: `a=1 2`
    SPACE_DELIMITED = "spaceDelimited"
    #: `a=1|2`
    PIPE_DELIMITED = "pipeDelimited"
    #: `a[b]=1`, items of a list `a[]=1`, those that are objects `a[0][b]=1`
    DEEP_OBJECT = "deepObject"
    #: as `deepObject`, all items of lists `a[0]=1`
    INDEXED = "indexed"
    #: Rest.li 2.0, for the query: `a=List(1,2)`, `a=(b:1,c:(d:2))`; a text has this form already
    RESTLI = "restli"


_PARAM_STYLES = frozenset(map(str, ParamStyle))


class DefaultTime(Model):
    """The default of a param that is a time before the call, as text in UTC."""

    #: the days between that time and the call
    days_ago: int = Field(0, ge=0)
    #: the form of the text, in the codes of `strftime`
    format: str = "%Y-%m-%d"

    def at(self, now: datetime) -> str:
        """The default of a call at this moment."""
        return (now - timedelta(days=self.days_ago)).strftime(self.format)


class Download(Model):
    """Where the bytes of a file are: in the response itself, or at a URL that it contains."""

    #: the path of the URL of the bytes; None if the response is the file
    url: JsonPath | None = None
    #: the path of the size in bytes
    size: JsonPath | None = None
    #: the path of the file name
    name: JsonPath | None = None
    #: the path of the extension, if `name` does not include it
    extension: JsonPath | None = None
    #: the path of the media type
    content_type: JsonPath | None = None
    #: the request that returns the record, if `request` does not
    metadata_request: str | None = None
    #: whether the URL carries its own permission; credentials are then never sent with it
    presigned: bool = False


class Alternative(Model):
    """The request that an operation sends if a param is left out."""

    without: str
    request: str
    paging: str | None = None


class CopyUpdate(Model):
    """How a write updates the synchronized copy of one entity.

    Texts may hold `{name}`: a param of the write, or else a member of its response.
    """

    #: the entity whose records the write changes
    entity: Identifier
    #: the action that reads the changed records; by default the response to the write is the record
    read: Literal["get", "list"] | None = None
    #: the params of that action
    params: dict[str, Any] = Field(default_factory=dict)
    #: further members of the records, such as the id of their parent
    add_fields: dict[str, str] = Field(default_factory=dict)
    #: the id of the parent, if the records' ids are unique only below one parent
    parent_id: str | None = None
    #: a param, as a dotted path; without it the write does not change the records
    if_param: JsonPath | None = None
    #: the id of the deleted record
    deleted_id: str | None = None
    #: whether to synchronize soon instead, because the write may change too many records to read at once
    resync: bool = False


class Columns(Model):
    """Where the names of columns are, if the rows of a response are lists of values."""

    #: the path of the list of names in the response, such as `meta.columns.*.name`
    names: JsonPath
    #: the param by which requests for further pages know the names, if only the first response has them; it is not sent
    param: str | None = None


class RequestSpec(Model):
    """One request to the application, and the place of the records in its response."""

    request: RequestLine
    #: the URL that the request begins with, if it is not that of the kind
    server: str | None = None
    #: constant headers
    headers: dict[str, str] = Field(default_factory=dict)
    #: constant query members; a list repeats the member
    constant_query: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    #: the media type of the body, if it is not that of the kind
    content_type: ContentType | None = None
    #: constant members of the body; `{name}` is a param that the path has too
    constant_body: dict[str, Any] = Field(default_factory=dict)
    #: whether the request has no body, although its method may have one
    no_body: bool = False
    #: the param that is the whole body: a list or any JSON, else text or base64 (`contentEncoding`)
    request_body: str | None = None
    #: a GraphQL document; the params of the body are its variables
    graphql: str | None = None
    #: the tool of an MCP server that the request calls; the params of the body are its arguments
    tool: str | None = Field(None, min_length=1, max_length=128)
    #: the JSON Schema of the structured content of the tool's results, which are checked against it
    output_schema: JsonSchema | None = None
    #: of a further request of such a tool: what it asks of the task
    task: TaskMethod | None = None
    #: the path of the list of records, if the response has one
    records: JsonPath | None = None
    #: if the list of records is a map: the member of each record that gets its key
    map_key: str | None = None
    #: the path of the record within each item, such as `node`
    unwrap: JsonPath = ()
    #: whether the response has one object in place of the list of records: the list then has this one record
    single: bool = False
    #: the names of the columns, if the rows are lists of values: records are then objects
    columns: Columns | None = None
    paging: str | None = None
    #: the order of the list; by default that of its paging style
    order: Order | None = None
    #: the requests that are sent in place of `request` if a param is left out
    alternatives: tuple[Alternative, ...] = ()
    #: the name of a Python rule, for a request that this language cannot describe
    rule: str | None = None


class Action(RequestSpec, CheckedModel):
    """One operation of an entity."""

    effect: Effect
    description: str
    #: how users ask for it, in their own words; the search for operations uses them
    phrases: Phrases = ()
    #: the param whose presence turns an `idempotent` operation into a `write`, as a dotted path
    write_if: JsonPath | None = None
    #: whether a write may change or remove existing data rather than only add to it; by default all writes may, except
    #: a `create` whose effect is `write`
    destructive: bool | None = None
    params: dict[str, JsonSchema] = Field(default_factory=dict)
    required: tuple[str, ...] = ()
    #: params that other lists have and this one does not → what to do instead
    unsupported_params: dict[str, str] = Field(default_factory=dict)
    #: further JSON Schema keywords for all params together (`oneOf`, `not`, `dependentRequired`)
    constraints: JsonSchema = Field(default_factory=dict)
    #: the path of the record, if the response has one
    record: JsonPath | None = None
    #: the header with the id of the record, if the response has no body: the record then has only this `id`
    id_header: str | None = None
    download: Download | None = None
    runs: Literal["inline", "job"] = "inline"
    #: how the application runs it in the background: how it is started, followed and read
    long_running: LongRunning | None = None
    #: how the application takes the file of the action in pieces, so that an upload can be resumed
    upload_session: UploadSession | None = None
    #: a request that replaces many calls of a batch
    bulk: Bulk | None = None
    #: seconds for the whole operation, retries included; of a long operation, for each of its requests
    timeout: float = 60
    #: how to look up whether a write happened whose response was lost: an operation, such as `notes.list`, with advice
    find_by: str | None = None
    example: dict[str, Any] = Field(default_factory=dict)
    #: how a write updates the synchronized copies; by default the response is a record of the entity
    write_through: tuple[CopyUpdate, ...] | None = None
    #: the fields of the record, if they differ from the entity's
    fields: dict[str, str | JsonSchema] | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_range(cls, document: Any) -> Any:
        """Every download takes `range_header`, whether its spec declares it or not."""
        if not isinstance(document, dict) or "download" not in document:
            return document
        params = document.get("params", {})
        if not isinstance(params, dict) or any(_is_range(name, schema) for name, schema in params.items()):
            return document
        return {**document, "params": {**params, "range_header": dict(_RANGE_HEADER)}}

    def param_in(self, value: Any) -> str | None:
        """The name of the param in a text that is only `{name}`; None for any other value."""
        name = value[1:-1] if isinstance(value, str) and re.fullmatch(r"{\w+}", value) else None
        return name if name in self.params else None

    def _faults(self) -> Iterator[str]:
        if sum(part is not None for part in (self.records, self.record, self.download)) != 1:
            yield "an action has exactly one of records, record and download"
        for name in self.required:
            if name not in self.params:
                yield f"required names {name}, which is not among the params"
        for name, schema in self.params.items():
            if schema.get("in", "query") not in _LOCATIONS:
                yield f"param {name}: `in` must be one of {', '.join(_LOCATIONS)}"
            if not isinstance(schema.get("as", name), str):
                yield f"param {name}: `as` must be text, the application's name of the param"
            if not isinstance(schema.get("text", name), str):
                yield f"param {name}: `text` must be the text to send, such as refs/heads/{{{name}}}"
            if schema.get("style", "form") not in _PARAM_STYLES or not isinstance(schema.get("explode", True), bool):
                yield f"param {name}: `style` must be one of {', '.join(ParamStyle)}; `explode` must be true or false"
            yield from _time_faults(name, schema)
        for name in re.findall(r"{(\w+)}", self.request):
            if name not in self.params and not any(alternative.without == name for alternative in self.alternatives):
                yield f"the request needs {{{name}}}, which is not among the params"


def _time_faults(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    if "default_time" not in schema:
        return
    if "default" in schema:
        yield f"param {name}: has `default` and `default_time`; drop one of them"
    try:
        DefaultTime.model_validate(schema["default_time"])
    except ValidationError:
        yield f"param {name}: `default_time` must be a time before the call, such as {{days_ago: 7}}, with its `format`"
