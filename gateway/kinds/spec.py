"""The spec language: the models of `specs/<kind>/*.yaml`, which `specs/README.md` explains.

A spec is data. Its vocabulary is closed: a handful of paging styles, authentication schemes and named rules.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self
from uuid import UUID, uuid5

from pydantic import Field, StringConstraints, model_validator

from gateway.errors import InternalError
from gateway.kinds.authentication import AuthMethod, OAuthEndpoints, PathDeprecation, Variable
from gateway.kinds.failures import Failure, RateLimit
from gateway.kinds.members import ContentType, Identifier, JsonSchema, Model, Phrases
from gateway.kinds.notices import NoticeSpec
from gateway.kinds.paging import Paging
from gateway.kinds.requests import Action
from gateway.kinds.sync import Search

KIND_NAME = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
KindName = Annotated[str, StringConstraints(pattern=KIND_NAME)]

#: the namespace of the UUIDs of kinds without `definition_id` (RFC 9562 §5.5)
_KINDS = UUID("5d8fbb6c-31f0-4b0e-9d0f-2a8f5a0e7c11")
#: maximum seconds of `default_retry_after`, if the spec has none
_LONGEST_DEFAULT_WAIT = 60


def display_name_of(kind: str) -> str:
    """The name of a kind as `connector_type` shows it: `support-desk` is `Support-Desk`."""
    return "-".join(part.capitalize() for part in kind.split("-"))


def definition_id_of(kind: str) -> str:
    """The `definition_id` of a kind whose spec has none."""
    return str(uuid5(_KINDS, kind))


class Entity(Model):
    """A type of resource: its actions, the fields of its records and its search fields."""

    description: str
    #: other words for its records; the search for operations uses them
    synonyms: Phrases = ()
    fields: dict[str, str | JsonSchema] = Field(default_factory=dict)
    #: whether records may have further fields, which differ by account
    additional_fields: bool = False
    actions: dict[Identifier, Action]
    search: Search | None = None

    @property
    def record_id_param(self) -> str | None:
        """The param by which `get` reads a record of the copy; None if only a list can read its records."""
        get, sync = self.actions.get("get"), self.search.sync if self.search else None
        if get is None or sync is None:
            return None
        if sync.parent is not None and (sync.parent.scopes_ids or sync.parent.add_fields):
            return None
        if sync.verify_param is not None:
            return sync.verify_param
        return get.required[0] if len(get.required) == 1 else None


class ConnectorSpec(Model):
    """One kind of application: its `connector.yaml` and its entities."""

    kind: KindName
    #: the vendor's name for the application, such as Zendesk; `title` by default
    application: str = Field("", min_length=1, max_length=60)
    title: str
    description: str
    #: names of applications of this kind, and other words for it; the search for operations uses them
    synonyms: Phrases = ()
    #: the UUID by which public SDKs look the kind up; made from the kind's name by default
    definition_id: str = ""
    #: scheme, host and path prefix of every request, with `{variable}` filled in
    server: str
    #: optional variable → the server of the connectors that have it
    server_with: dict[Identifier, str] = Field(default_factory=dict)
    #: hosts that may receive credentials and to which URLs in responses may point: names or `*.suffix`
    hosts: tuple[str, ...]
    #: hosts that files may be downloaded from, without credentials; `*` is any public host
    file_hosts: tuple[str, ...] = ()
    environment: dict[Identifier, Variable] = Field(default_factory=dict)
    authentication: dict[Identifier, AuthMethod]
    oauth: OAuthEndpoints | None = None
    #: paths and operations that the application has deprecated
    deprecations: tuple[PathDeprecation, ...] = ()
    headers: dict[str, str] = Field(default_factory=dict)
    content_type: ContentType = "application/json"
    #: the protocol version of the MCP server whose tools are the operations
    mcp: Literal["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] | None = None
    failure: Failure = Failure()
    #: whether responses omit empty lists, as the JSON format of Protocol Buffers does
    omits_empty_lists: bool = False
    paging: dict[Identifier, Paging] = Field(default_factory=dict)
    rate_limit: RateLimit = RateLimit()
    webhooks: NoticeSpec | None = None
    #: the read that shows whether credentials work, if the application has one
    health_check: str | None = None
    #: its params, as far as it requires any
    health_check_params: dict[str, Any] = Field(default_factory=dict)
    #: names of properties in property maps: the gateway's → the application's; `a_*: b_*` replaces a prefix
    property_names: dict[str, str] = Field(default_factory=dict)
    #: JSON Schemas that params refer to as `$ref: "#/$defs/name"`
    definitions: dict[Identifier, JsonSchema] = Field(default_factory=dict)
    entities: Mapping[Identifier, Entity] = Field(default_factory=dict)

    @property
    def display_name(self) -> str:
        """The kind's name as `connector_type` shows it."""
        return display_name_of(self.kind)

    def current_path(self, path: str) -> str:
        """The path of a request; a deprecation with `switched` replaces the beginning of the path."""
        for each in self.deprecations:
            if each.switched and each.path and path.startswith(each.path):
                return f"{each.replacement}{path.removeprefix(each.path)}"
        return path

    def server_for(self, environment: Mapping[str, str]) -> str:
        """The server of a connector with these variables, which are not filled in yet."""
        return next((server for name, server in self.server_with.items() if name in environment), self.server)

    @property
    def oauth_endpoints(self) -> OAuthEndpoints:
        """The OAuth endpoints; raises InternalError for a kind without them."""
        if self.oauth is None:
            raise InternalError
        return self.oauth

    @cached_property
    def oauth_method(self) -> str | None:
        """The authentication method whose tokens come from a person's consent, or None."""
        if self.oauth is not None and not self.oauth.authorization_url:
            return None  # the application's own pages issue the refresh tokens
        named = (name for name, method in self.authentication.items() if method.oauth and method.grant_type is None)
        return next(named, None)

    @model_validator(mode="after")
    def _set_dependent_defaults(self) -> Self:
        if not self.application:
            object.__setattr__(self, "application", self.title)
        if not self.definition_id:
            object.__setattr__(self, "definition_id", definition_id_of(self.kind))
        if self.failure.default_retry_after is None:
            wait = min(self.rate_limit.seconds, _LONGEST_DEFAULT_WAIT)
            object.__setattr__(self, "failure", self.failure.model_copy(update={"default_retry_after": wait}))
        return self
