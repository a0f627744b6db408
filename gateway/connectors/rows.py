"""Rows of connectors and of their secrets as the records that the store returns."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any
from uuid import UUID

from gateway.connectors.model import ConnectorRecord, SealedSecret
from gateway.contract.connectors import ConnectorStatus
from gateway.vault.vault import Binding, Sealed

_MEMBERS = tuple(each.name for each in fields(ConnectorRecord))


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
