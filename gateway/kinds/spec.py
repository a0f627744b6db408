"""The spec language: the models behind `specs/<kind>/*.yaml`, explained for people in `specs/README.md`.

A spec is data. Its vocabulary is closed: a handful of paging styles, authentication schemes and named rules.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal, Self
from uuid import UUID, uuid5

from pydantic import Field, StringConstraints, model_validator

from gateway.contract.kinds import Effect, PagingStyle
from gateway.kinds.long_running import LongRunning
from gateway.kinds.members import ContentType, JsonPath, JsonSchema, MetaPath, Model, RequestLine

Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
KIND_NAME = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
KindName = Annotated[str, StringConstraints(pattern=KIND_NAME)]
Phrases = tuple[Annotated[str, StringConstraints(strip_whitespace=True, min_length=2, max_length=100)], ...]


#: the name space of the ids of kinds that name none (RFC 9562 §5.5)
_KINDS = UUID("5d8fbb6c-31f0-4b0e-9d0f-2a8f5a0e7c11")
#: seconds after which a limit without a reported window is read again
_LONGEST_WINDOW = 60

#: styles whose next page follows from the page before: a response need not name it
_COUNTED_STYLES = (PagingStyle.PAGE, PagingStyle.OFFSET, PagingStyle.LAST_ID)
#: the Meta member of a next page that the response does not name
_COUNTED_NEXT = "next"


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


HEADER_PATH, LINK_PATH, BESIDE_RECORDS = "$header", "$link", "@"


class Incomplete(Model):
    """How an answer says that the list it belongs to is not whole, though it may end."""

    #: the Meta member that says so; callers see it only then
    meta: str
    #: where it lies in the answer
    path: JsonPath
    #: members that it has then
    when: dict[str, Any]


class Paging(Model):
    """A named paging style of a kind: which param turns the page and which members of the answer are the Meta."""

    style: PagingStyle
    #: the param that asks for the next page
    param: str
    #: the param that sets how many records a page holds, where there is one
    size: str | None = None
    #: how many pages the application serves at most
    max_pages: int | None = None
    #: the Meta member whose value goes into `param` (a dotted path within Meta). By default `page`, `offset` and
    #: `last_id` count on until a page is short, and Meta has `next`
    next: JsonPath = ()
    #: the Meta member that must be true for a next page to exist, where the application has one
    has_more: str | None = None
    #: the Meta member that is true on the last page, where the application names a next one all the same
    end: str | None = None
    #: `offset`: the Meta member that holds the number of all records
    total: str | None = None
    #: the first page number (1) or offset (0)
    first: int | None = None
    #: `last_id`: the member of a record that goes into `param`
    id_field: JsonPath = ("id",)
    #: `link`: the name of the query member in the URL, where it is not `param`
    url_param: str | None = None
    #: the params that requests for further pages repeat; all by default. The others have no default there
    repeat_params: tuple[str, ...] | None = None
    #: every Meta member of the product documents, and where it lies in the response
    meta: dict[str, MetaPath] = Field(default_factory=dict)
    #: how an answer says that there is more than the application lists
    incomplete: Incomplete | None = None

    @model_validator(mode="after")
    def _names_the_next_page(self) -> Self:
        if not self.next and self.style not in _COUNTED_STYLES:
            raise ValueError(f"the style {self.style} needs `next`: the member of `meta` that names the next page")
        if not self.next:
            object.__setattr__(self, "next", (_COUNTED_NEXT,))
        return self

    @property
    def request_params(self) -> tuple[str, ...]:
        return tuple(name for name in (self.param, self.size) if name)

    @cached_property
    def is_counted(self) -> bool:
        """Whether the next page follows from the page before: no response names it."""
        return self.next[0] not in self.meta

    @property
    def members(self) -> tuple[str, ...]:
        """The members of Meta."""
        return (*self.meta, *((self.next[0],) if self.is_counted else ()))

    def beside(self, records: JsonPath) -> "Paging":
        """This style for a list at a path: `@` stands for the object that holds the list."""
        if all(path[:1] != (BESIDE_RECORDS,) for path in self.meta.values()):
            return self
        found = {
            name: (*records[:-1], *path[1:]) if path[:1] == (BESIDE_RECORDS,) else path
            for name, path in self.meta.items()
        }
        return self.model_copy(update={"meta": found})


class CredentialField(Model):
    """One member of a connector's credentials."""

    description: str
    required: bool = False
    secret: bool = False
    format: Literal["email"] | None = None


class Deprecation(Model):
    """When something of the application ends (RFC 8594, RFC 9745), and what replaces it."""

    #: the first day without it
    sunset: date | None = None
    #: since when new users should not adopt it; `sunset` by default
    deprecated: date | None = None
    #: what replaces it: an authentication method, a path or a few words
    replacement: str | None = None
    #: the vendor's page about it
    documentation_url: str | None = None


class PathDeprecation(Deprecation):
    """Paths of the application that end."""

    #: how the paths of the requests concerned begin
    path: str
    #: whether requests go to `replacement` already: their paths then begin with it
    switched: bool = False


class AuthMethod(Deprecation):
    """One way of proving who calls: its credential fields and how they become a header."""

    title: str
    description: str | None = None
    scheme: Literal["bearer", "basic", "api_key"]
    #: for `bearer`: the field that holds the token
    token: str | None = None
    #: for `basic`: the two halves, with `{field}` filled in
    username: str | None = None
    password: str | None = None
    #: for `api_key`: headers and members of the query, with `{field}` filled in
    headers: dict[str, str] = Field(default_factory=dict)
    query: dict[str, str] = Field(default_factory=dict)
    #: tokens of this method come from, and are renewed by, the kind's OAuth endpoints
    oauth: bool = False
    #: how they come without a person's consent: for the app's own id and secret (RFC 6749 §4.4)
    grant_type: Literal["client_credentials"] | None = None
    credentials: dict[str, CredentialField]

    @property
    def header_names(self) -> tuple[str, ...]:
        """The headers that hold its credentials."""
        return tuple(self.headers) if self.scheme == "api_key" else ("Authorization",)

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(name for name, field in self.credentials.items() if field.secret)

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name, field in self.credentials.items() if field.required)


class OAuthEndpoints(Model):
    """The kind's OAuth 2.0 authorization server (RFC 6749), as far as it differs from the textbook."""

    #: where a person consents; none where tokens come of the app's own credentials alone
    authorization_url: str = ""
    token_url: str
    revocation_url: str | None = None
    #: the server's identifier, which an `iss` in its answers must be (RFC 9207); the origin of
    #: `authorization_url` by default
    issuer: str | None = None
    #: how the revocation is sent: RFC 7009 form, a form without client authentication, or the bearer token alone
    revocation_style: Literal["rfc7009", "bearer"] = "rfc7009"
    revocation_method: Literal["POST", "DELETE"] = "POST"
    #: client authentication at the token endpoint
    client_authentication: Literal["basic", "body"] = "body"
    #: encoding of the token request
    encoding: Literal["form", "json"] = "form"
    scopes: tuple[str, ...] = ()
    scope_separator: str = " "
    pkce: bool = False
    #: constant query members of the authorization request
    authorization_params: dict[str, str] = Field(default_factory=dict)
    #: credentials and variables that come with the token answer: name → where it lies; of the members that RFC 6749
    #: names, such as `access_token`, the path that is read when the response has no such member
    outputs: dict[str, JsonPath] = Field(default_factory=dict)
    #: the application's own words for RFC 6749's `invalid_grant`: the refresh token counts no more
    invalid_grant_codes: tuple[str, ...] = ()
    #: and for `invalid_client`: the app's id or secret is wrong
    invalid_client_codes: tuple[str, ...] = ()


class Variable(Model):
    """A non-secret value of one connector that addresses need, such as the account's subdomain."""

    description: str
    #: not for a variable among the `outputs` of OAuth: until the first token a connector may be without it
    required: bool = True
    #: what it must be: one DNS label, one of the kind's hosts, or an https origin on one of them
    type: Literal["dns_label", "host", "origin"] = "dns_label"
    example: str | None = None
    #: what stands in where the caller names none
    default: str | None = None


class Failure(Model):
    """How the application says no."""

    #: paths of its own error code and message, the first that holds text wins
    code: tuple[JsonPath, ...] = ()
    message: tuple[JsonPath, ...] = ()
    #: paths of further words: every text below them is added to the message; `*` is each item or member
    details: tuple[JsonPath, ...] = ()
    #: paths of the names of members of the request that it complains about, the first that holds any wins
    field: tuple[JsonPath, ...] = ()
    #: place of its id for the request, in the answer
    request_id: tuple[JsonPath, ...] = ()
    #: a member that must be true for an answer to count as a success
    ok: str | None = None
    #: places where a successful response has nothing: null, false and what is empty do not count; `*` is each member
    when_present: tuple[JsonPath, ...] = ()
    #: application codes that mean something whatever the status: gateway error code → application codes
    codes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    #: paths of the name of the limit that was hit, where there are several
    limit_name: tuple[JsonPath, ...] = ()
    #: refusals that pass, by limit, code or status (`*` at the end for any rest) → seconds until then, or `day` for the
    #: allowance of a day
    retry_after: dict[str, int | Literal["day"]] = Field(default_factory=dict)
    #: seconds for which a limit is waited for where nothing else says how long; left out, those of the rate limit
    default_retry_after: int | None = None
    #: headers that tell, beside Retry-After, when an allowance is full again: seconds or a Unix time
    reset_headers: tuple[str, ...] = ()


class Allowance(Model):
    """One of the application's limits, as headers of its answers tell of it; header names in lower case."""

    #: headers that hold one number each: the limit, what is left of it, and when it is full again, in seconds or as a
    #: Unix time
    limit: str | None = None
    remaining: str | None = None
    reset: str | None = None
    #: a header with all values as `name=number`, with a final `*` for any rest; and the meaning of its names:
    #: `limit`, `remaining`, `reset`, or `used` where it is written `name=used/limit`; `""` is a header without names
    header: str | None = None
    members: dict[Literal["limit", "remaining", "reset", "used"], str] = Field(default_factory=dict)
    #: seconds of its window, where it is another than the rate limit's
    seconds: int | None = None
    #: whether it is of some requests only: that nothing is left of it slows the others down and stops none
    per_endpoint: bool = False


class RateLimit(Model):
    """The application's published budget for one connector; what its answers say goes before it."""

    #: the defaults suit applications that publish no limit: 429 and `Retry-After` slow requests down further
    requests: int = 120
    seconds: int = 60
    concurrent: int | None = None
    #: what headers of its answers tell
    allowances: tuple[Allowance, ...] = ()


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


#: the rules of `gateway.upstream.rules`; packages bring further ones by entry point
RULE_NAMES = ("property_names", "query_page", "query_page_of_200")
_PARAM_STYLES = frozenset(map(str, ParamStyle))
#: `fragment` selects fields in a GraphQL document, `text` is for params that only the `text` of others holds
_LOCATIONS = ("path", "query", "body", "header", "fragment", "text")


class CopyUpdate(Model):
    """The synchronized copies that a write changes, so that the next search shows it.

    Texts may hold `{name}`: a param of the write, or a member of its answer where it has no such param.
    """

    #: the entity whose records changed
    entity: Identifier
    #: the action that reads what changed; without one the answer of the write is the record
    read: Literal["get", "list"] | None = None
    #: what that action is given
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


class Action(RequestSpec):
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
    #: seconds for the whole operation, tries included
    timeout: float = 60
    #: the search or list that finds what a lost write may have made
    find_by: str | None = None
    example: dict[str, Any] = Field(default_factory=dict)
    #: what synchronized copies must learn of a write; left out, its answer is a record of the entity
    write_through: tuple[CopyUpdate, ...] | None = None
    #: fields of the record where they differ from the entity's
    fields: dict[str, str | JsonSchema] | None = None

    def param_in(self, value: Any) -> str | None:
        """The param that a text `{name}` stands for."""
        name = value[1:-1] if isinstance(value, str) and re.fullmatch(r"{\w+}", value) else None
        return name if name in self.params else None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        faults = list(self._faults())
        if faults:
            raise ValueError("; ".join(faults))
        return self

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


class SyncRead(RequestSpec):
    """A list as the synchronizer reads it: one request, constant params, the paging style."""

    #: the path of the list of records in the response
    records: JsonPath
    #: constant params, in the query or body as usual; in texts `{since}` is the time from which changes are wanted,
    #: `{fields}` the search fields and `{properties}` those of the property map, with commas between them
    params: dict[str, Any] = Field(default_factory=dict)
    #: seconds from one page to the next, where the application allows this list less than others
    request_interval: float = Field(0, ge=0)


class Incremental(Model):
    """How the synchronizer asks for what changed since it read last."""

    #: `modified`: a param or text names the time; `newest_first`: read down to that time; `cursor`: the application's
    #: own cursor goes on for ever; `end_time`: each answer names the time of the next; `window`: a search that ends
    #: early is asked anew from the last time it told
    style: Literal["modified", "newest_first", "cursor", "end_time", "window"]
    #: the param that takes the time
    param: str | None = None
    #: how the application writes times in requests
    format: Literal["iso", "seconds", "milliseconds"] = "iso"
    #: the member of a record that holds the time of its change
    field: JsonPath | None = None
    #: the Meta member that is true at the end
    end: str | None = None
    #: seconds before the last read from which is read again: clocks differ, and changes may show late
    overlap: int = Field(120, ge=0)
    #: seconds that a time in a request must lie in the past
    lag: int = Field(0, ge=0)


class Parent(Model):
    """The entity whose records are walked, because the list belongs to one of them at a time."""

    entity: Identifier
    #: param → the member of the parent that fills it
    params: dict[str, JsonPath]
    #: members that records get from their parent: name → the parent's member
    add_fields: dict[str, JsonPath] = Field(default_factory=dict)
    #: members that a parent must have to be read at all; `*` is any value
    where: dict[str, Any] = Field(default_factory=dict)
    #: whether changes are only below parents that changed themselves
    only_changed: bool = False
    #: whether ids count only below the parent
    scopes_ids: bool = False
    #: the member that is true of a record that has records of its own below it, to be read by its id
    recurse_field: str | None = None
    #: those that have not, in spite of it: member → values
    recurse_except: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class Sync(SyncRead):
    """How the copy of an entity is made and kept fresh."""

    incremental: Incremental | None = None
    parent: Parent | None = None
    #: another list, where the one of everything cannot tell what changed; what its records lack is kept
    changes: SyncRead | None = None
    #: the list of records that are gone
    deletions: SyncRead | None = None
    #: members that a record has when it is gone
    deleted_when: dict[str, Any] = Field(default_factory=dict)
    #: members that records get besides: name → its path within the record
    add_fields: dict[str, JsonPath] = Field(default_factory=dict)
    #: paths in a record that are never kept: they change with every answer, or are a permission by themselves
    excluded_fields: tuple[JsonPath, ...] = ()
    #: whether records that the application no longer lists are kept
    retain_unlisted: bool = False
    #: the param of `get` that takes a record's id, where the list promises no completeness: what it misses is asked
    #: for, and gone only where it is not found
    verify_param: str | None = None
    #: members of records that the list does not show: that it misses them says nothing
    unlisted_when: dict[str, Any] = Field(default_factory=dict)
    #: a named Python function of `gateway.context_store.sync.transforms` that makes search documents of records
    transform: Literal["associated_ids", "comment_events", "message_time", "property_list"] | None = None
    #: seconds from one synchronization to the next, and from one reading of everything to the next
    interval: int = Field(900, ge=1)
    full_sync_interval: int = Field(86_400, ge=1)


class Search(Model):
    """The fields that `context_store_search` may name, and how the copy is kept fresh."""

    fields: dict[str, Literal["string", "integer", "number", "boolean", "array", "object", "any"]]
    #: the member that identifies a record
    primary_key: str = "id"
    sync: Sync | None = None

    @property
    def reads(self) -> dict[str, SyncRead]:
        """The lists that the synchronizer reads, by the member that tells of them."""
        if self.sync is None:
            return {}
        found = {"": self.sync, "changes": self.sync.changes, "deletions": self.sync.deletions}
        return {member: read for member, read in found.items() if read is not None}


class Entity(Model):
    """A kind of resource: the actions on it, its record and its search fields."""

    description: str
    #: other words for its records, for the search of operations
    synonyms: Phrases = ()
    fields: dict[str, str | JsonSchema] = Field(default_factory=dict)
    #: whether records may have fields besides, which only the account knows
    additional_fields: bool = False
    actions: dict[Identifier, Action]
    search: Search | None = None

    @property
    def record_id_param(self) -> str | None:
        """The param by which `get` reads a record of the copy; None where a list alone tells all that the copy has."""
        get, sync = self.actions.get("get"), self.search.sync if self.search else None
        if get is None or sync is None:
            return None
        if sync.parent is not None and (sync.parent.scopes_ids or sync.parent.add_fields):
            return None
        if sync.verify_param is not None:
            return sync.verify_param
        return get.required[0] if len(get.required) == 1 else None


class NoticeSignature(Model):
    """How the application signs its notices (HMAC, RFC 2104)."""

    header: str
    algorithm: Literal["sha1", "sha256", "sha512"] = "sha256"
    encoding: Literal["hex", "base64"] = "hex"
    #: what separates the items of the header, where it may hold several signatures
    separator: str | None = None
    #: how the signature, or an item that is one, begins: `v1=`
    prefix: str = ""
    #: what is signed, with `{body}` (the raw bytes), `{timestamp}`, `{delivery_id}`, `{method}` and `{url}` filled in
    signed: str = "{body}"
    #: how the secret begins that the application shows, where that is no part of the key: `whsec_`
    secret_prefix: str = ""
    #: whether the secret is the key itself or the key in Base64
    secret_encoding: Literal["text", "base64"] = "text"


class NoticeTimestamp(Model):
    """When a notice was signed; older ones are refused."""

    #: where it lies: a JsonPath of the body, or `$header.name`
    path: MetaPath
    #: what separates the items of a header that holds more, and how the item begins that is the time
    separator: str | None = None
    prefix: str = ""
    format: Literal["unix", "unix_ms", "iso8601"] = "unix"
    #: seconds that it may differ from the gateway's time
    tolerance: int = Field(300, ge=1)


class NoticeHandshake(Model):
    """How the application finds out that the URL belongs to who named it."""

    #: `challenge`: a signed request whose `path` is answered as `challenge`. `secret`: an unsigned request brings the
    #: secret that later ones are signed with, in `path`; a secret of a header is sent back in it
    style: Literal["challenge", "secret"]
    #: a JsonPath of the body, or `$header.name`
    path: MetaPath


class NoticeRule(Model):
    """The entities that notices of some types are about."""

    #: types of changes, `*` for any text; `""` is a change without a type
    types: tuple[str, ...]
    #: the entities whose next synchronization it brings forward
    entities: tuple[Identifier, ...]
    #: where a change holds the id of its record: `get` reads that record, and its entity is not synchronized
    record_id: JsonPath = ()


class NoticeSpec(Model):
    """The webhooks of the application: how its notices are verified, and what they are about."""

    signature: NoticeSignature
    timestamp: NoticeTimestamp | None = None
    #: the signed id of a delivery: a JsonPath of the body, or `$header.name`; the digest of what is signed by default
    delivery_id: MetaPath = ()
    handshake: NoticeHandshake | None = None
    #: the list of changes in the body; `$` is the body, which may be one change
    changes: JsonPath = ()
    #: the type of a change: a JsonPath in it, or `$header.name` of the notice
    type: MetaPath
    #: the first rule that has the type of a change counts; changes of other types are ignored
    rules: tuple[NoticeRule, ...]


class ConnectorSpec(Model):
    """One kind of application, whole."""

    kind: KindName
    #: the vendor's name for the application, such as Zendesk; `title` by default
    application: str = Field("", min_length=1, max_length=60)
    title: str
    description: str
    #: names of applications of this kind, and other words for it, for the search of operations
    synonyms: Phrases = ()
    #: the UUID by which public SDKs look the kind up; made from the kind's name by default
    definition_id: str = ""
    #: scheme, host and path prefix of every request, with `{variable}` filled in
    server: str
    #: optional variable → the server of the connectors that have it
    server_with: dict[Identifier, str] = Field(default_factory=dict)
    #: hosts that may see credentials and that addresses in answers may name: names or `*.suffix`
    hosts: tuple[str, ...]
    #: hosts that files may come from, without credentials; `*` is any public host
    file_hosts: tuple[str, ...] = ()
    environment: dict[Identifier, Variable] = Field(default_factory=dict)
    authentication: dict[Identifier, AuthMethod]
    oauth: OAuthEndpoints | None = None
    #: addresses that end
    deprecations: tuple[PathDeprecation, ...] = ()
    headers: dict[str, str] = Field(default_factory=dict)
    content_type: ContentType = "application/json"
    failure: Failure = Failure()
    #: whether responses leave out lists without members, as Protocol Buffers in JSON do
    omits_empty_lists: bool = False
    paging: dict[Identifier, Paging] = Field(default_factory=dict)
    rate_limit: RateLimit = RateLimit()
    webhooks: NoticeSpec | None = None
    health_check: str
    #: names that callers use for the application's own, in property maps: ours → theirs; `a_*: b_*` is for a prefix
    property_names: dict[str, str] = Field(default_factory=dict)
    #: JSON Schemas that params refer to as `$ref: "#/$defs/name"`
    definitions: dict[Identifier, JsonSchema] = Field(default_factory=dict)
    entities: dict[Identifier, Entity] = Field(default_factory=dict)

    @property
    def display_name(self) -> str:
        """The kind's name as `connector_type` shows it: `support-desk` is `Support-Desk`."""
        return "-".join(part.capitalize() for part in self.kind.split("-"))

    def current_path(self, path: str) -> str:
        """The path of a request, at its replacement where the kind has switched."""
        for each in self.deprecations:
            if each.switched and path.startswith(each.path):
                return f"{each.replacement}{path.removeprefix(each.path)}"
        return path

    def server_for(self, environment: Mapping[str, str]) -> str:
        """The server of a connector with these variables."""
        return next((server for name, server in self.server_with.items() if name in environment), self.server)

    @cached_property
    def oauth_method(self) -> str | None:
        """The authentication method whose tokens come of a person's consent."""
        named = (name for name, method in self.authentication.items() if method.oauth and method.grant_type is None)
        return next(named, None)

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        if not self.application:
            object.__setattr__(self, "application", self.title)
        if not self.definition_id:
            object.__setattr__(self, "definition_id", str(uuid5(_KINDS, self.kind)))
        if self.failure.default_retry_after is None:
            window = min(self.rate_limit.seconds, _LONGEST_WINDOW)
            object.__setattr__(self, "failure", self.failure.model_copy(update={"default_retry_after": window}))
        return self
