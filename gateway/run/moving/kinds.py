"""Imported kinds of a file: each is checked as an import of its document is, and served if the operator accepts it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from gateway.contract.connectors import MCP
from gateway.errors import Conflict, InvalidParams
from gateway.foundation.db.pool import Connection
from gateway.kinds.catalog import Catalog
from gateway.run.moving.rows import refused
from gateway.upstream.import_process import ImportRequest, imported

#: maximum characters of the address or file name of a kind's document
_MAX_SOURCE = 2048

_IS_SAME = """
    SELECT document = $3::jsonb FROM imported_kinds WHERE kind = $1 AND version = $2
"""
_SERVED = """
    SELECT DISTINCT ON (kind) kind, document::text AS document FROM imported_kinds WHERE served_at IS NOT NULL
    ORDER BY kind, served_at DESC
"""
# A version that says that it is served in the future would come before all that are served here.
_NOT_LATER = """
    UPDATE imported_kinds SET served_at = now() WHERE xmin = pg_current_xact_id()::xid AND served_at > now()
"""
_APPS_OF_OTHERS = """
    SELECT organization_id FROM oauth_apps WHERE organization_id <> $1 AND (kind = $2 OR issuer = $3)
    UNION ALL
    SELECT organization_id FROM oauth_registrations WHERE organization_id <> $1 AND issuer = $3
    LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class KindAcceptance:
    """Decides about the kinds of one file."""

    connection: Connection
    organization_id: UUID
    catalog: Catalog
    #: names of the kinds that the operator has accepted for all organizations of this gateway
    accepted: Collection[str]

    async def served(self) -> Mapping[str, str]:
        """The documents of the imported kinds that this gateway serves, by kind."""
        return {row["kind"]: row["document"] for row in await self.connection.fetch(_SERVED)}

    async def checked(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row of a version, which the organization has imported. Raises Conflict if this gateway has another kind
        of its name, and InvalidParams for one that an import would refuse.
        """
        kind, version, document, source = (row.get(each) for each in ("kind", "version", "document", "source"))
        key = f"{kind} {version}"
        if not isinstance(kind, str) or not _is_kind(kind, version, document):
            raise refused("imported_kinds", key, "the document is not that of the kind")
        if self.catalog.is_of_folder(kind) or kind == MCP:
            raise refused("imported_kinds", key, "this gateway has the kind already; an import cannot replace it")
        if not isinstance(source, str) or not source.isprintable() or len(source) > _MAX_SOURCE:
            raise refused("imported_kinds", key, f"source is at most {_MAX_SOURCE} printable characters")
        is_same = await self.connection.fetchval(_IS_SAME, kind, version, msgspec.json.encode(document).decode())
        if is_same is False:
            raise Conflict(f"the kind {kind} of this gateway differs from that of the organization; import it first")
        if is_same is None:
            try:
                await imported(ImportRequest(source=source, document=document))
            except InvalidParams as error:
                raise refused("imported_kinds", key, error.detail) from error
        return {**row, "importing_organization": str(self.organization_id)}

    async def require_accepted(self, served: Mapping[str, str]) -> None:
        """Raise Conflict if a kind that was served is another one after the import, or one is served that the operator
        has not accepted, or that would get the OAuth app of another organization.
        """
        await self.connection.execute(_NOT_LATER)
        now = await self.served()
        if changed := [kind for kind in served if now.get(kind) != served[kind]]:
            raise Conflict(
                f"the kind {changed[0]} of this gateway differs from that of the organization; import it first"
            )
        connectors = {kind: msgspec.json.decode(now[kind])["connector"] for kind in now if kind not in served}
        for kind, connector in connectors.items():
            issuer = (connector.get("oauth") or {}).get("issuer")
            if await self.connection.fetchval(_APPS_OF_OTHERS, self.organization_id, kind, issuer) is not None:
                raise Conflict(
                    f"imported_kinds {kind}: another organization of this gateway has an OAuth app for the kind or its "
                    f"authorization server {issuer}, and the kind of the file would get its secret; import the kind "
                    "here first"
                )
        if unknown := {kind: each for kind, each in connectors.items() if kind not in self.accepted}:
            described = ", ".join(f"{kind} ({each['server']})" for kind, each in unknown.items())
            options = " ".join(f"--accept-kind {kind}" for kind in unknown)
            raise Conflict(
                f"imported_kinds: all organizations of this gateway would be served the kinds {described}; import them "
                f"here first and review them, or accept those of the file with {options}"
            )


def _is_kind(kind: str, version: object, document: object) -> bool:
    if not isinstance(document, dict) or not isinstance(version, int):
        return False
    connector, entities = document.get("connector"), document.get("entities")
    return isinstance(connector, dict) and isinstance(entities, dict) and connector.get("kind") == kind
