"""Models of an entity's actions: the requests that they send, their params, and what a write changes."""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from gateway.contract.kinds import Effect
from gateway.kinds.bulk import Bulk
from gateway.kinds.long_running import LongRunning
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
from gateway.kinds.upload_session import UploadSession

#: `fragment` selects fields in a GraphQL document, `text` is for params that only the `text` of others holds
_LOCATIONS = ("path", "query", "body", "header", "fragment", "text")


class ParamStyle(StrEnum):
    """How a list or an object is written in a query or a form, in OpenAPI's words; `explode` is true by default."""

    #: `a=1&a=2`, or `a=1,2` where `explode` is false
    FORM = "form"
    #: `a=1 2`
    SPACE_DELIMITED = "spaceDelimited"
    #: `a=1|2`
    PIPE_DELIMITED = "pipeDelimited"
    #: `a[b]=1`, items of a list `a[]=1`, those that are objects `a[0][b]=1`
    DEEP_OBJECT = "deepObject"
    #: as `deepObject`, all items of lists `a[0]=1`
    INDEXED = "indexed"


_PARAM_STYLES = frozenset(map(str, ParamStyle))


class Download(Model):
    """Where the bytes of a file are: in the answer itself, or behind an address in it."""

    #: place of the address of the bytes; None when the answer is the file
    url: JsonPath | None = None
    #: paths of what the record knows of the file
    size: JsonPath | None = None
    name: JsonPath | None = None
    #: the end of the name, where the record keeps it apart
    extension: JsonPath | None = None
    content_type: JsonPath | None = None
    #: the request whose answer is the record, where the request of the file is not
    metadata_request: str | None = None
    #: whether the address carries its own permission, so that credentials must never go with it
    presigned: bool = False


class Alternative(Model):
    """Where an operation goes instead when a param is left out."""

    without: str
    request: str
    paging: str | None = None


class CopyUpdate(Model):
    """The synchronized copies that a write changes, so that the next search shows it.

    Texts may hold `{name}`: a param of the write, or a member of its answer where it has no such param.
    """

    #: the entity whose records changed
    entity: Identifier
    #: the action that reads what changed; without one the answer of the write is the record
    read: Literal["get", "list"] | None = None
    #: the params of that action
    params: dict[str, Any] = Field(default_factory=dict)
    #: members that the records get besides, such as the id of their parent
    add_fields: dict[str, str] = Field(default_factory=dict)
    #: the stored id of the parent, where records have ids of their own only below it
    parent_id: str | None = None
    #: only when the write was given this param, as a dotted path
    if_param: JsonPath | None = None
    #: the stored id of a record that is gone now
    deleted_id: str | None = None
    #: too much to read at once: the next synchronization comes at once instead
    resync: bool = False


class RequestSpec(Model):
    """One request to the application, and the place of the records in its response."""

    request: RequestLine
    #: the URL that the request begins with, where it is not that of the kind
    server: str | None = None
    #: constant headers
    headers: dict[str, str] = Field(default_factory=dict)
    #: constant query members; one with several values is sent once for each
    constant_query: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    #: the type of the body, where it is not that of the kind
    content_type: ContentType | None = None
    #: constant members of the body; `{name}` is a param that the path has too
    constant_body: dict[str, Any] = Field(default_factory=dict)
    #: whether the request has no body, though its method has one
    no_body: bool = False
    #: the param that is the whole body: a list or any JSON, else text or base64 (`contentEncoding`)
    request_body: str | None = None
    #: a GraphQL document; params that go into the body are its variables
    graphql: str | None = None
    #: the path of the list of records, where the response holds one
    records: JsonPath | None = None
    #: where the list of records is a map: the member of each record that takes its key
    map_key: str | None = None
    #: the path of the record within each item, such as `node`
    unwrap: JsonPath = ()
    paging: str | None = None
    #: a named Python rule for what data cannot say
    rule: str | None = None


class Action(RequestSpec, CheckedModel):
    """One operation of an entity as its file tells it."""

    effect: Effect
    description: str
    #: how people ask for it, in their own words, for the search of operations
    phrases: Phrases = ()
    #: the param whose presence turns an `idempotent` operation into a `write`, as a dotted path
    write_if: JsonPath | None = None
    #: whether a write may change or take away what is there; left out, all may but a `create` whose effect is `write`
    destructive: bool | None = None
    params: dict[str, JsonSchema] = Field(default_factory=dict)
    required: tuple[str, ...] = ()
    #: params of other lists that this one lacks → what to do instead
    unsupported_params: dict[str, str] = Field(default_factory=dict)
    #: further JSON Schema keywords over all params together (`oneOf`, `not`, `dependentRequired`)
    constraints: JsonSchema = Field(default_factory=dict)
    #: the path of the record, where the response holds one
    record: JsonPath | None = None
    download: Download | None = None
    alternatives: tuple[Alternative, ...] = ()
    runs: Literal["inline", "job"] = "inline"
    #: how the application runs it in the background: how it is started, followed and read
    long_running: LongRunning | None = None
    #: how the application takes the file of the action in pieces, so that an upload can be resumed
    upload_session: UploadSession | None = None
    #: the request that stands for many calls of a batch
    bulk: Bulk | None = None
    #: seconds for the whole operation, tries included
    timeout: float = 60
    #: the search or list that finds what a lost write may have made
    find_by: str | None = None
    example: dict[str, Any] = Field(default_factory=dict)
    #: the updates of synchronized copies after a write; by default the answer is a record of the entity
    write_through: tuple[CopyUpdate, ...] | None = None
    #: fields of the record where they differ from the entity's
    fields: dict[str, str | JsonSchema] | None = None

    def param_in(self, value: Any) -> str | None:
        """The param that a text `{name}` stands for."""
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
                yield f"param {name}: in is one of {', '.join(_LOCATIONS)}"
            if not isinstance(schema.get("as", name), str):
                yield f"param {name}: as is the name that the application has for it"
            if not isinstance(schema.get("text", name), str):
                yield f"param {name}: text is what is sent for it, such as refs/heads/{{{name}}}"
            if schema.get("style", "form") not in _PARAM_STYLES or not isinstance(schema.get("explode", True), bool):
                yield f"param {name}: style is one of {', '.join(ParamStyle)}; explode is true or false"
        for name in re.findall(r"{(\w+)}", self.request):
            if name not in self.params and not any(alternative.without == name for alternative in self.alternatives):
                yield f"the request needs {{{name}}}, which is not among the params"
