"""Workspaces, connectors, their synchronized copies, and connect links."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

from msgspec import Struct

from gateway.contract.members import TIME, Id, PageAsOf, PageOf, Time, Url, member
from gateway.contract.problems import JobErrorView

#: maximum seconds for which a connect link is valid
MAX_LINK_SECONDS = 1800

KIND_ID = "5f0c1d2e-8a3b-4c4d-9e5f-6a7b8c9d0e1f"

#: the type of a request for a connector to an MCP server, which is no kind
MCP = "mcp"
#: the only member of a credential that is a reference to a secret
SECRET = "$secret"
#: the code of the fault of an MCP server that needs a token, or a person who signs in
TOKEN_REQUIRED = "token_required"


class ConnectorStatus(StrEnum):
    """Whether a connector can be used."""

    #: its OAuth consent is not finished
    PENDING = "pending"
    #: ready for calls
    ACTIVE = "active"
    #: the application refused its credentials; it must be authorized again
    NEEDS_REAUTH = "needs_reauth"
    #: disabled by its owner
    DISABLED = "disabled"
    #: no process serves its kind; never stored, because it depends on the specs of the process
    UNSERVED = "unserved"


class CopyStatus(StrEnum):
    """The state of an entity's synchronized copy."""

    #: never loaded
    PENDING = "pending"
    SYNCING = "syncing"
    READY = "ready"
    FAILED = "failed"


class SessionStatus(StrEnum):
    """The state of a connect link."""

    #: the person has not connected an application yet
    PENDING = "pending"
    #: the connector exists
    COMPLETED = "completed"
    #: the link is no longer valid
    EXPIRED = "expired"


class WorkspaceView(Struct, frozen=True):
    """A group of connectors."""

    id: Annotated[Id, member("The workspace's id.")]
    name: Annotated[str, member("The workspace's name.", "acme")]
    connectors: Annotated[int, member("The number of its connectors.", 2)]
    created_at: Annotated[Time, member("When the workspace was created.")]


class WorkspacePage(PageOf[WorkspaceView], frozen=True):
    """Workspaces by name."""


class SourceTemplateView(Struct, frozen=True):
    """The kind, in the format that the public SDK reads."""

    id: Annotated[str, member("The same as `definition_id`.", KIND_ID)]
    name: Annotated[str, member("The same as `connector_type`.", "Support-Desk")]


class Connector(Struct, frozen=True, kw_only=True):
    """One account of an application, bound to a workspace."""

    id: Annotated[Id, member("The connector's id.")]
    name: Annotated[str, member("The display name.", "Help desk")]
    kind: Annotated[str, member("The kind.", "support-desk")]
    connector_type: Annotated[str, member("The kind in its display form.", "Support-Desk")]
    workspace_name: Annotated[str, member("The connector's workspace.", "acme")]
    status: Annotated[ConnectorStatus, member("Whether the connector can be used.", "active")]
    status_reason: Annotated[
        str | None, member("The reason for the status, and parts of the application that will be switched off.")
    ] = None
    auth_method: Annotated[str | None, member("The authentication method.", "api_token")] = None
    application: Annotated[str, member("The application's name.", "Zendesk")] = ""
    definition_id: Annotated[Id, member("The kind's id.", KIND_ID)] = ""
    owner: Annotated[Id | None, member("The person whose own connector it is; null for a shared one.", None)] = None
    environment: Annotated[
        dict[str, Any], member("The kind's variables that are not secret.", {"subdomain": "acme"})
    ] = {}
    created_at: Annotated[Time | None, member("When the connector was created.", TIME)] = None
    updated_at: Annotated[Time | None, member("When the connector was last changed.", TIME)] = None
    summarized_source_template: Annotated[
        SourceTemplateView | None, member("The kind, in the format that the public SDK reads.")
    ] = None


class ConnectorPage(PageAsOf[Connector], frozen=True):
    """Connectors, the oldest first."""


class ConnectorSelection(Struct, frozen=True, kw_only=True):
    """A filter of connectors; None matches every value."""

    workspace_name: str | None = None
    name: str | None = None
    kind: str | None = None
    status: str | None = None
    #: a part of the connector's or the workspace's name, ignoring case
    containing: str | None = None
    ids: Collection[UUID] | None = None
    #: the person whose own connectors are the only ones
    owner_id: UUID | None = None
    #: the caller's person, whose own connectors are included
    person_id: UUID | None = None
    #: whether those of every person are included
    with_personal: bool = False
    #: names of the workspaces whose connectors are included; None for all
    workspaces: Collection[str] | None = None
    #: names of the kinds that are served, for `status`; None if every kind is
    served: Collection[str] | None = None


class UnhealthyView(Struct, frozen=True):
    """The error that a call would get."""

    code: Annotated[str, member("The error code.")]
    message: Annotated[str, member("What is wrong.")]
    retryable: Annotated[bool, member("Whether a retry may succeed.")]


class Health(Struct, frozen=True, omit_defaults=True):
    """The result of a connector's check."""

    status: Annotated[Literal["healthy", "unhealthy"], member("Whether the application accepts the credentials.")]
    reason: Annotated[UnhealthyView | None, member("Of an unhealthy connector: the error that a call would get.")] = (
        None
    )
    message: Annotated[str | None, member("What is wrong, or that the kind has no health check.")] = None

    @property
    def is_healthy(self) -> bool:
        return self.status == "healthy"


class FreshnessView(Struct, frozen=True, kw_only=True):
    """The synchronized copy of one entity."""

    status: Annotated[CopyStatus, member("The state of the copy.", "ready")]
    records: Annotated[int, member("The number of records.", 1204)]
    synchronized: Annotated[bool, member("Whether the copy was ever loaded.", True)]
    complete: Annotated[bool, member("Whether the last full synchronization read all records.", True)]
    reason: Annotated[str | None, member("Why the copy is not complete.")]
    held_deletions: Annotated[
        int, member("Records of a large deletion that waits until the next synchronization confirms it.", 0)
    ]
    last_synced_at: Annotated[Time | None, member("When the copy was last synchronized.", TIME)]
    next_sync_at: Annotated[Time | None, member("When the copy is synchronized next.", TIME)]
    age_seconds: Annotated[int | None, member("Seconds since the last synchronization.", 41)]
    error: Annotated[JobErrorView | None, member("Why the last synchronization failed.")]


class ContextStoreView(Struct, frozen=True):
    """The synchronized copies of a connector."""

    entities: Annotated[dict[str, FreshnessView], member("The copies by entity.")]


class UsableEntityView(Struct, frozen=True):
    """An entity and its actions."""

    entity: Annotated[str, member("The entity.", "tickets")]
    actions: Annotated[list[str], member("Its actions.", ["list", "get"])]
    description: Annotated[str, member("What the entity is.", "Customer requests.")]


class InspectionView(Connector, frozen=True, kw_only=True):
    """A connector, and what an agent can do with it."""

    ready: Annotated[bool, member("Whether operations can be executed now.", True)]
    operations: Annotated[list[UsableEntityView], member("The operations, by entity.")]
    context_store: Annotated[dict[str, FreshnessView], member("The copies by entity.")]
    docs_skill_id: Annotated[str, member("`id` of GET /api/v1/skills/docs.", "support-desk")]


class IfExists(StrEnum):
    """What to do if the workspace has a connector of the same name: names do not have to be unique."""

    #: create another connector of that name
    CREATE = "create"
    #: refuse the request; the error names the existing connector
    FAIL = "fail"
    #: update the credentials of the existing connector, which keeps its id
    UPDATE = "update"


class ConnectorSettings(TypedDict, total=False):
    """The members of a connector that callers set; each is a column. Only the given ones are present; None clears."""

    #: the display name; None counts as not given, because every connector has a name
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorRequest:
    """A request to create a connector. Its name is the kind's title unless given."""

    workspace_name: str
    connector_type: str
    settings: ConnectorSettings
    credentials: Mapping[str, Any] = field(repr=False)
    environment: Mapping[str, Any] = field(default_factory=dict)
    #: whether the credentials are checked at the application first
    validate: bool = True
    if_exists: IfExists = IfExists.CREATE
    #: `me` or a person's id; None for a shared connector
    owner: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectSession:
    """The applications that a person may connect by a link, and the state of the link."""

    id: UUID
    organization_id: UUID
    client_id: UUID
    workspace_name: str
    kinds: tuple[str, ...]
    redirect_url: str | None
    #: the existing connector that is reauthorized
    reauthorizes: UUID | None
    #: the consent in progress
    flow_id: UUID | None
    expires_at: datetime
    status: SessionStatus
    connector_id: UUID | None
    #: the person to whom the connector will belong
    owner_id: UUID | None = None
    #: the session for a person in which it was created
    session_id: UUID | None = None
    #: the name of the new connector; None for the application's
    connector_name: str | None = None

    @property
    def view(self) -> "ConnectSessionView":
        """The session for the response."""
        connector_id = None if self.connector_id is None else str(self.connector_id)
        return ConnectSessionView(str(self.id), self.status, self.expires_at, connector_id)


class ConnectLinkView(Struct, frozen=True):
    """A link with which a person connects an application."""

    id: Annotated[Id, member("The id to ask for the state of the link.")]
    url: Annotated[
        Url, member("The page for the person; it can be used once.", "https://gateway.example.com/connect/5e1f0c3d")
    ]
    expires_at: Annotated[Time, member("When the link expires.")]


class ConnectSessionView(Struct, frozen=True, omit_defaults=True):
    """The state of a connect link."""

    id: Annotated[Id, member("The link's id.")]
    status: Annotated[SessionStatus, member("The state of the link.", "pending")]
    expires_at: Annotated[Time, member("When the link expires.")]
    connector_id: Annotated[Id | None, member("Of a completed link: the connector.")] = None
