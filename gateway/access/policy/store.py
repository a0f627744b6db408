"""Policies in PostgreSQL: each change is a new version, and the newest 100 of a name are kept."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from gateway.access.identity.store import SCOPES, WORKSPACES
from gateway.access.policy.model import PersonRights, Policy
from gateway.contract.policies import NewPolicy, PolicyMode
from gateway.errors import Conflict, FieldError, InvalidPolicy, NotFound, PreconditionFailed
from gateway.foundation.db.pool import Connection, Database

#: maximum policies of an organization, and kept versions of one
MAX_POLICIES, MAX_VERSIONS = 1000, 100
#: maximum characters of the current policies of an organization, all of which each decision may need
MAX_CHARACTERS = 512 << 10
_COLUMNS = "name, version, mode, cedar, description, created_at, created_by"
_CURRENT = f"SELECT {_COLUMNS} FROM policies WHERE organization_id = $1 AND is_current ORDER BY name"
_VERSIONS = f"SELECT {_COLUMNS} FROM policies WHERE organization_id = $1 AND name = $2 ORDER BY version DESC"
_PERSON = f"""
    SELECT ARRAY(SELECT group_name FROM group_members AS member WHERE member.client_id = people.client_id ORDER BY 1)
               AS groups,
           CASE WHEN clients.disabled_at IS NULL THEN {SCOPES} ELSE '{{}}' END AS scopes, {WORKSPACES} AS workspaces
    FROM people JOIN clients ON clients.id = people.client_id WHERE people.client_id = $1
"""
# Changes of an organization's policies are made one after the other.
_LOCK = "SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE"
_STATE = """
    SELECT (SELECT version FROM policies WHERE organization_id = $1 AND name = $2 AND is_current) AS current,
           (SELECT max(version) FROM policies WHERE organization_id = $1 AND name = $2) AS latest,
           count(*) AS others, coalesce(sum(length(cedar)), 0) AS characters
    FROM policies WHERE organization_id = $1 AND is_current AND name <> $2
"""
_SHARED_ID = """
    SELECT name, (SELECT id FROM unnest(ids) AS id WHERE id = ANY ($3::text[]) LIMIT 1) AS id
    FROM policies WHERE organization_id = $1 AND name <> $2 AND is_current AND ids && $3::text[] LIMIT 1
"""
_RETIRE = "UPDATE policies SET is_current = false WHERE organization_id = $1 AND name = $2 AND is_current"
_INSERT = f"""
    INSERT INTO policies (organization_id, name, version, mode, cedar, description, ids, is_current, created_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, true, $8)
    RETURNING {_COLUMNS}
"""
_PRUNE = "DELETE FROM policies WHERE organization_id = $1 AND name = $2 AND version <= $3 AND NOT is_current"


class PolicyStore:
    """The policies of organizations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def current(self, organization_id: UUID) -> Sequence[Policy]:
        """The current policies, by name."""
        async with self._database.tenant(organization_id) as connection:
            return [_policy(row) for row in await connection.fetch(_CURRENT, organization_id)]

    async def get(self, organization_id: UUID, name: str) -> Policy:
        """The current version; raises NotFound."""
        found = next((each for each in await self.current(organization_id) if each.name == name), None)
        if found is None:
            raise _missing(name)
        return found

    async def versions(self, organization_id: UUID, name: str) -> Sequence[Policy]:
        """The kept versions, the newest first, also of a deleted policy; raises NotFound if there are none."""
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(_VERSIONS, organization_id, name)
        if not rows:
            raise _missing(name)
        return [_policy(row) for row in rows]

    async def person(self, client_id: UUID) -> PersonRights | None:
        """The groups and rights of a person; None for a client that is no person."""
        async with self._database.system() as connection:
            row = await connection.fetchrow(_PERSON, client_id)
        if row is None:
            return None
        workspaces = None if row["workspaces"] is None else frozenset(row["workspaces"])
        return PersonRights(tuple(row["groups"]), frozenset(row["scopes"]), workspaces)

    async def put(
        self, organization_id: UUID, new: NewPolicy, ids: Sequence[str], client_id: UUID, if_match: str | None
    ) -> Policy:
        """Store a version, which is the current one from now on.

        Raises PreconditionFailed, Conflict, and InvalidPolicy for an `@id` of another policy.
        """
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            state = await _locked(connection, organization_id, new.name, if_match)
            if state["others"] >= MAX_POLICIES:
                raise Conflict(f"the organization has {MAX_POLICIES} policies; delete some")
            if state["characters"] + len(new.cedar) > MAX_CHARACTERS:
                raise Conflict(f"the organization's policies have more than {MAX_CHARACTERS:,} characters; delete some")
            shared = await connection.fetchrow(_SHARED_ID, organization_id, new.name, list(ids))
            if shared is not None:
                message = f"the id {shared['id']!r} is that of a statement of the policy {shared['name']!r}"
                raise InvalidPolicy(faults=[FieldError("/cedar", "cedar", "conflict", message)])
            version = (state["latest"] or 0) + 1
            await connection.execute(_RETIRE, organization_id, new.name)
            row = await connection.fetchrow(
                _INSERT,
                organization_id,
                new.name,
                version,
                new.mode.value,
                new.cedar,
                new.description,
                list(ids),
                client_id,
            )
            await connection.execute(_PRUNE, organization_id, new.name, version - MAX_VERSIONS)
        return _policy(row)

    async def delete(self, organization_id: UUID, name: str, if_match: str | None) -> None:
        """Let no version be the current one; raises NotFound and PreconditionFailed."""
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            state = await _locked(connection, organization_id, name, if_match)
            if state["current"] is None:
                raise _missing(name)
            await connection.execute(_RETIRE, organization_id, name)


async def _locked(connection: Connection, organization_id: UUID, name: str, if_match: str | None) -> Any:
    """The state of a name, which nobody else changes meanwhile; raises PreconditionFailed."""
    await connection.execute(_LOCK, organization_id)
    state = await connection.fetchrow(_STATE, organization_id, name)
    _require_match(if_match, state["current"])
    return state


def _require_match(if_match: str | None, current: int | None) -> None:
    """Raise PreconditionFailed unless the tags of `If-Match` name the current version (RFC 9110 §13.1.1)."""
    if if_match is None:
        return
    tags = {tag.strip() for tag in if_match.split(",")}
    if current is None or not tags & {"*", f'"{current}"'}:
        state = "there is no such policy" if current is None else f"the current version is {current}"
        raise PreconditionFailed(f"If-Match is {if_match}; {state}")


def _policy(row: Any) -> Policy:
    return Policy(**{**row, "mode": PolicyMode(row["mode"])})


def _missing(name: str) -> NotFound:
    return NotFound(f"there is no policy {name!r}")
