"""Connectors, their credentials and rows: the members of `ConnectorRecord` are the selected columns."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, get_args, get_type_hints
from uuid import UUID

from gateway.access.identity.model import Caller, Scope
from gateway.contract.connectors import ConnectorSettings, ConnectorStatus
from gateway.errors import Conflict, NotFound, PersonalConnector, Unavailable
from gateway.foundation.vault.vault import Binding, Sealed


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorRecord:
    """A connector of a workspace to an account of a kind, without its credentials."""

    id: UUID
    organization_id: UUID
    workspace_id: UUID
    workspace_name: str
    kind: str
    name: str
    status: ConnectorStatus
    status_reason: str | None
    auth_method: str | None
    environment: dict[str, str]
    #: the person whose account it is; None for a shared connector
    owner_id: UUID | None = None
    #: scopes that the application asked for when it refused a call; the next consent requests them too
    asked_scopes: list[str] = field(default_factory=list)
    #: another one after a person replaced the credentials; the same after a renewal
    account_id: UUID
    created_at: datetime
    updated_at: datetime

    def require_usable(self, caller: Caller) -> None:
        """Raise NotFound unless the caller may see the workspace and the connector is shared or the caller's own;
        PersonalConnector for an administrator.
        """
        self.require_listed(caller)
        if not caller.owns(self.owner_id):
            raise PersonalConnector("the connector is a person's own; only calls made as that person can use it")

    def require_listed(self, caller: Caller) -> None:
        """Raise NotFound unless the caller may use the connector, or disable and delete it as an administrator."""
        caller.require_workspace(self.workspace_name, "connector")
        if not caller.reaches(self.id):
            raise NotFound("there is no such connector")
        if not caller.owns(self.owner_id) and Scope.ADMIN not in caller.client.scopes:
            raise NotFound("there is no such connector")


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """Decrypted credentials; `expires_at` is when their access token expires, `version` that of the row."""

    values: dict[str, str] = field(repr=False)
    expires_at: datetime | None
    version: int
    #: the kind and the variables to which they are bound
    kind: str
    environment: Mapping[str, str]

    def require_for(self, record: ConnectorRecord) -> None:
        """Raise Unavailable if the record's kind or variables have changed; the next call reads the record again."""
        if (record.kind, record.environment) != (self.kind, self.environment):
            raise Unavailable("the connector was changed during the call; try again", retry_after=1)


@dataclass(frozen=True, slots=True)
class SealedSecret:
    """The sealed credentials of a connector."""

    sealed: Sealed = field(repr=False)
    expires_at: datetime | None
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConnector:
    """The members of a new connector."""

    workspace_id: UUID
    kind: str
    #: with a name
    settings: ConnectorSettings
    auth_method: str
    environment: Mapping[str, str]
    credentials: Mapping[str, str] = field(repr=False)
    expires_at: datetime | None = None
    #: the person whose account it is
    owner_id: UUID | None = None


class ConnectorChange(ConnectorSettings, total=False):
    """A change of a connector: missing members stay unchanged, also those that are None but cannot be cleared."""

    status: ConnectorStatus | None
    #: cleared by a change of the status that has none
    status_reason: str | None
    auth_method: str
    environment: Mapping[str, str]
    credentials: Mapping[str, str] | None
    #: when the access token in the credentials expires
    expires_at: datetime | None


def name_taken(name: str, connector_ids: Sequence[UUID]) -> Conflict:
    """The error for a name that is taken, with the ids of the connectors that have it."""
    ids = [str(connector_id) for connector_id in connector_ids]
    return Conflict(
        f"the workspace has a connector {name!r} already: {', '.join(ids)}; change that one, or choose another name",
        extra={"connector_id": ids[0]},
    )


#: begins the name of the stored member that is the reference to a credential's secret; no credential's name begins so
REFERENCE = "$secret "


def references_in(credentials: Mapping[str, str]) -> dict[str, str]:
    """The references among stored credentials, by the names of the credentials."""
    return {name.removeprefix(REFERENCE): url for name, url in credentials.items() if name.startswith(REFERENCE)}


def without_values_of_references(credentials: Mapping[str, str]) -> dict[str, str]:
    """What may be stored: the references, and the values of the other credentials."""
    return {name: value for name, value in credentials.items() if REFERENCE + name not in credentials}


_MEMBERS = tuple(each.name for each in fields(ConnectorRecord))
#: columns that are selected by an expression
_READ_AS = {
    "workspace_name": "workspaces.name AS workspace_name",
    "environment": "connectors.environment::text AS environment",
}
COLUMNS = ", ".join(_READ_AS.get(name, f"connectors.{name}") for name in _MEMBERS)
#: members that are not columns of `connectors`
_SECRETS = ("credentials", "expires_at")
CHANGED_COLUMNS = tuple(name for name in get_type_hints(ConnectorChange) if name not in _SECRETS)
#: columns that may be null
_CLEARABLE = {name for name, hint in get_type_hints(ConnectorRecord).items() if type(None) in get_args(hint)}


def changed_columns(change: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that members of a `ConnectorChange` set."""
    given = {name: change[name] for name in CHANGED_COLUMNS if name in change}
    columns = {name: value for name, value in given.items() if value is not None or name in _CLEARABLE}
    return {"status_reason": None, **columns} if "status" in columns else columns


def sealed_in(row: Any) -> Sealed:
    return Sealed(row["key_id"], row["wrapped_key"], row["sealed"])


def binding(organization_id: UUID, connector_id: UUID, kind: str, environment: Mapping[str, str]) -> Binding:
    """The associated data of sealed credentials. Kind and variables are part of it: they decide the receiving host."""
    canonical = json.dumps([kind, dict(environment)], sort_keys=True, separators=(",", ":"))
    return Binding(organization_id, connector_id, context=hashlib.sha256(canonical.encode()).hexdigest())


def binding_of(organization_id: UUID, connector_id: UUID, row: Any) -> Binding:
    return binding(organization_id, connector_id, row["kind"], json.loads(row["environment"]))


def with_secret(row: Any) -> tuple[ConnectorRecord, SealedSecret | None]:
    secret = SealedSecret(sealed_in(row), row["expires_at"], row["version"]) if row["key_id"] is not None else None
    return record_in(row), secret


def record_in(row: Any) -> ConnectorRecord:
    members = {name: row[name] for name in _MEMBERS}
    members["environment"] = json.loads(members["environment"])
    members["status"] = ConnectorStatus(members["status"])
    return ConnectorRecord(**members)
