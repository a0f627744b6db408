"""Tokens of providers: each is that of a client of its own, which has no secret, no scope and one URL."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from msgspec import UNSET

from gateway.access.audit.log import Audit
from gateway.access.identity.clients import require_name
from gateway.access.identity.directory import subject_faults
from gateway.access.identity.model import Caller, Scope
from gateway.access.identity.store import IdentityStore
from gateway.access.identity.tokens import hashed, new_secret
from gateway.contract.people import NewPerson
from gateway.contract.scim import (
    MAX_TOKENS,
    SCIM,
    NewScimToken,
    NewScimTokenView,
    ProviderIdentity,
    ScimTokenList,
    ScimTokenView,
    SubjectAttribute,
)
from gateway.errors import Conflict, InvalidParams, NotFound
from gateway.foundation.db.pool import Database

#: seconds for which a token is valid unless it is revoked: providers store one token
_SECONDS = 100 * 365 * 86_400
_LOCK_ORGANIZATION = "SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE"
_SELECT = """
    SELECT scim_tokens.client_id AS id, clients.name, issuer, subject, scim_tokens.created_at
    FROM scim_tokens JOIN clients ON clients.id = client_id
    WHERE scim_tokens.organization_id = $1 AND clients.disabled_at IS NULL
"""
_LIST = f"{_SELECT} ORDER BY scim_tokens.created_at, scim_tokens.client_id"
_GET = f"{_SELECT} AND scim_tokens.client_id = $2"
_INSERT = """
    INSERT INTO scim_tokens (organization_id, client_id, issuer, subject, created_by) VALUES ($1, $2, $3, $4, $5)
"""


class ScimTokens:
    """The tokens of an organization's providers, for administrators of all workspaces."""

    def __init__(
        self, audit: Audit, database: Database, identity: IdentityStore, *, issuer: str | None, base_url: str
    ) -> None:
        self._audit = audit
        self._database = database
        self._identity = identity
        #: the operator's sign-in provider, if there is one
        self._issuer = issuer
        self._base_url = base_url

    async def all(self, caller: Caller) -> ScimTokenList:
        """The tokens that are valid."""
        caller.require_whole_organization()
        return ScimTokenList(await self._of(caller.organization_id))

    async def create(self, caller: Caller, new: NewScimToken) -> NewScimTokenView:
        """Create a token; raises InvalidParams, and Conflict if there are too many."""
        with self._audit.record("scim_token.create", caller, changed=["issuer", "name", "subject"]) as entry:
            caller.require_whole_organization()
            require_name(new.name)
            issuer = self._issuer if new.issuer is UNSET else new.issuer
            if isinstance(new.issuer, str) and (faults := [*subject_faults(NewPerson(issuer=issuer, subject="x"))]):
                raise InvalidParams(faults=faults)
            client_id, token, organization_id = uuid4(), new_secret(), caller.organization_id
            async with self._database.system() as connection, connection.transaction():
                await connection.execute(_LOCK_ORGANIZATION, organization_id)
                if len(await connection.fetch(_LIST, organization_id)) >= MAX_TOKENS:
                    raise Conflict(f"the organization has {MAX_TOKENS} SCIM tokens; revoke some")
                await self._identity.insert_client(
                    connection,
                    client_id,
                    name=new.name,
                    organization_ids=[organization_id],
                    secret_hashes=[],
                    scopes=[],
                )
                await self._identity.save_token_within(connection, hashed(token), client_id, _SECONDS, resource=SCIM)
                members = (issuer, new.subject.value, caller.client_id)
                await connection.execute(_INSERT, organization_id, client_id, *members)
                row = await connection.fetchrow(_GET, organization_id, client_id)
            entry.target = str(client_id)
        return NewScimTokenView(**_members(row), token=token, url=f"{self._base_url}{SCIM}")

    async def revoke(self, caller: Caller, token_id: UUID) -> None:
        """End a token in every process at once; raises NotFound. What its provider has done stays."""
        with self._audit.record("scim_token.revoke", caller, target=str(token_id)):
            caller.require_whole_organization()
            async with self._database.tenant(caller.organization_id) as connection:
                row = await connection.fetchrow(_GET, caller.organization_id, token_id)
            if row is None:
                raise NotFound("there is no such SCIM token")
            await self._identity.disable_client(token_id)

    def provider(self, caller: Caller) -> Caller:
        """The caller with the rights of a provider, if its token is one of a provider."""
        if caller.client.resource != SCIM:
            return caller
        return Caller(replace(caller.client, scopes=frozenset({Scope.ADMIN})), caller.organization_id)

    async def identity_of(self, caller: Caller) -> ProviderIdentity | None:
        """How the people of the caller's provider are known when they sign in; None if they do not."""
        async with self._database.tenant(caller.organization_id) as connection:
            row = await connection.fetchrow(_GET, caller.organization_id, caller.client_id)
        if row is None or row["issuer"] is None:
            return None
        return ProviderIdentity(row["issuer"], SubjectAttribute(row["subject"]))

    async def _of(self, organization_id: UUID) -> list[ScimTokenView]:
        async with self._database.tenant(organization_id) as connection:
            rows: Sequence[Any] = await connection.fetch(_LIST, organization_id)
        return [ScimTokenView(**_members(row)) for row in rows]


def _members(row: Any) -> dict[str, Any]:
    return {**row, "id": str(row["id"]), "subject": SubjectAttribute(row["subject"])}
