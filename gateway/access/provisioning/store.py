"""Users and groups of providers in PostgreSQL."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from gateway.access.identity.people import People
from gateway.access.provisioning.model import StoredGroup, StoredUser, email_of, name_of, user_key
from gateway.access.provisioning.refusals import refused, taken
from gateway.contract.people import MAX_GROUPS, NewPerson, PersonChange, PersonStatus
from gateway.contract.scim import GroupChange, MembersChange, UserState
from gateway.errors import Conflict, NotFound
from gateway.foundation.db.notifications import NOTIFY_ALL
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.db.where import Where

#: maximum groups of an organization, and members of the groups of a page beyond those of its first one
_MAX_GROUPS, _MAX_LISTED = 10_000, 20_000
#: members about whom processes are notified one by one
_FEW = 100

# The email addresses of a user: those of the provider, unless an administrator has changed the person's since.
EMAILS = """
    CASE WHEN people.email IS NULL THEN '[]'::jsonb
         WHEN provisioned.attributes->'emails' @> jsonb_build_array(jsonb_build_object('value', people.email))
         THEN provisioned.attributes->'emails'
         ELSE jsonb_build_array(jsonb_build_object('value', people.email, 'type', 'work', 'primary', true)) END
"""
#: the name by which providers know a person
USER_NAME = "coalesce(provisioned.user_name, people.login, people.email, people.client_id::text)"
# Users are people of this organization alone, whom it may change; those of a client's product are its own. Only the
# system sees in which other organizations a person is.
_USERS = """
    FROM client_organizations AS membership
    JOIN people ON people.client_id = membership.client_id
    JOIN clients ON clients.id = people.client_id
    LEFT JOIN provisioned_people AS provisioned
        ON provisioned.client_id = people.client_id AND provisioned.organization_id = $1
    WHERE membership.organization_id = $1 AND people.namespace_id IS NULL
      AND NOT EXISTS (
          SELECT FROM client_organizations AS other
          WHERE other.client_id = people.client_id AND other.organization_id <> $1)
"""
_SELECT_USERS = f"""
    SELECT people.client_id AS id, {USER_NAME} AS user_name, provisioned.external_id, people.name, people.email,
           coalesce(provisioned.attributes, '{{}}')::text AS attributes, ({EMAILS})::text AS emails,
           coalesce((
               SELECT json_agg(json_build_object('value', groups.id, 'display', groups.name) ORDER BY groups.name)
               FROM group_members JOIN groups
                   ON groups.organization_id = group_members.organization_id AND groups.name = group_members.group_name
               WHERE group_members.organization_id = $1 AND group_members.client_id = people.client_id
           ), '[]')::text AS groups,
           clients.created_at, coalesce(provisioned.updated_at, clients.created_at) AS updated_at, clients.disabled_at,
           provisioned.client_id IS NOT NULL AS is_provisioned
    {_USERS}
"""
_USER = f"{_SELECT_USERS} AND people.client_id = $2"
_LOCK_USER = "SELECT id FROM clients WHERE id = $1 FOR NO KEY UPDATE"
# The two indexes of names, of people with and without a provider.
NAMED = """
    people.client_id IN (
        SELECT client_id FROM provisioned_people WHERE organization_id = $1 AND user_key = {name}
        UNION ALL
        SELECT client_id FROM people AS unprovisioned
        WHERE lower(coalesce(login, email, client_id::text)) = lower({name})
          AND NOT EXISTS (SELECT FROM provisioned_people WHERE provisioned_people.client_id = unprovisioned.client_id)
    )
"""
_IS_TAKEN = f"SELECT EXISTS (SELECT {_USERS} AND {NAMED.format(name='$2::text')} AND people.client_id <> $3)"
# A person who was known before its provider provisions people.
_UNPROVISIONED = f"""
    {_SELECT_USERS} AND people.issuer = $2 AND people.subject = $3 AND provisioned.client_id IS NULL
"""
_PROVISION = """
    INSERT INTO provisioned_people (client_id, organization_id, user_name, user_key, external_id, attributes)
    VALUES ($2, $1, $3, $4, $5, $6::text::jsonb)
    ON CONFLICT (client_id) DO UPDATE
    SET user_name = EXCLUDED.user_name, user_key = EXCLUDED.user_key, external_id = EXCLUDED.external_id,
        attributes = EXCLUDED.attributes, updated_at = now()
    WHERE provisioned_people.organization_id = $1
"""
# Locks the organization's row, so that of two requests with one name at the same time only one succeeds.
_LOCK_ORGANIZATION = "SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE"

_SELECT_GROUPS = """
    SELECT id, name, external_id, created_at, updated_at,
           (SELECT count(*) FROM group_members
            WHERE group_members.organization_id = $1 AND group_members.group_name = groups.name) AS members
    FROM groups WHERE organization_id = $1
"""
_GROUP = f"{_SELECT_GROUPS} AND id = $2"
_LOCK_GROUP = "SELECT id FROM groups WHERE organization_id = $1 AND id = $2 FOR UPDATE"
# Groups may have thousands of members: PostgreSQL makes their JSON.
_MEMBERS = """
    SELECT groups.id, coalesce(json_agg(json_build_object(
               'value', people.client_id, 'display', people.name, 'type', 'User', '$ref', $3 || people.client_id
           ) ORDER BY people.client_id) FILTER (WHERE people.client_id IS NOT NULL), '[]')::text AS members
    FROM groups
    LEFT JOIN group_members
        ON group_members.organization_id = groups.organization_id AND group_members.group_name = groups.name
    LEFT JOIN people ON people.client_id = group_members.client_id
    WHERE groups.organization_id = $1 AND groups.id = ANY ($2::uuid[])
    GROUP BY groups.id
"""
_COUNT_GROUPS = "SELECT count(*) FROM groups WHERE organization_id = $1"
_IS_GROUP_TAKEN = """
    SELECT EXISTS (SELECT FROM groups WHERE organization_id = $1 AND lower(name) = lower($2) AND id <> $3)
"""
# An administrator gives the group rights.
_INSERT_GROUP = """
    INSERT INTO groups (organization_id, id, name, external_id, workspaces, scopes) VALUES ($1, $2, $3, $4, '{}', '{}')
"""
_CHANGE_GROUP = (
    "UPDATE groups SET name = $3, external_id = $4, updated_at = now() WHERE organization_id = $1 AND id = $2"
)
# Policies name groups; under another name they would no longer hold.
_IS_IN_POLICY = r"""
    SELECT EXISTS (
        SELECT FROM policies WHERE organization_id = $1 AND is_current
          AND (strpos(cedar, '"' || $2 || '"') > 0 OR strpos(cedar, '\"' || $2 || '\"') > 0))
"""
_OF_ORGANIZATION = """
    id IN (SELECT client_id FROM client_organizations WHERE organization_id = $1)
    AND NOT EXISTS (SELECT FROM client_organizations WHERE client_id = clients.id AND organization_id <> $1)
"""
_RENAME_DELEGATES = f"""
    UPDATE clients SET delegate_for = array_replace(delegate_for, $2, $3)
    WHERE $2 = ANY (delegate_for) AND {_OF_ORGANIZATION}
"""
_REMOVE_DELEGATES = f"""
    UPDATE clients SET delegate_for = array_remove(delegate_for, $2)
    WHERE $2 = ANY (delegate_for) AND {_OF_ORGANIZATION}
"""
_UNKNOWN = f"""
    SELECT given.id FROM unnest($2::uuid[]) AS given (id)
    WHERE given.id NOT IN (SELECT people.client_id {_USERS} AND people.client_id = ANY ($2::uuid[])) LIMIT 1
"""
_JOIN = """
    INSERT INTO group_members (organization_id, group_name, client_id)
    SELECT $1, $2, given.id FROM unnest($3::uuid[]) AS given (id)
    ON CONFLICT DO NOTHING RETURNING client_id
"""
_HAS_TOO_MANY = """
    SELECT client_id FROM group_members WHERE organization_id = $1 AND client_id = ANY ($2::uuid[])
    GROUP BY client_id HAVING count(*) > $3 LIMIT 1
"""
_LEAVE = """
    DELETE FROM group_members
    WHERE organization_id = $1 AND group_name = $2 AND ($3::uuid[] IS NULL OR client_id = ANY ($3::uuid[]))
    RETURNING client_id
"""
_DELETE_GROUP = "DELETE FROM groups WHERE organization_id = $1 AND id = $2"

#: a condition for `Where.add`, whose first argument is the organization
Condition = Callable[[Where], str]


class ProvisioningStore:
    """The users and groups of organizations."""

    def __init__(self, database: Database, people: People) -> None:
        self._database = database
        self._people = people

    @asynccontextmanager
    async def _changing(self, organization_id: UUID) -> AsyncIterator[tuple[Connection, set[str]]]:
        """A locked organization, and the set for the people that change (or `*`), of whom processes cache nothing, and
        whose sessions end that need a group which they have left.
        """
        changed = set[str]()
        async with self._database.system() as connection, connection.transaction():
            await connection.execute(_LOCK_ORGANIZATION, organization_id)
            yield connection, changed
            if changed:
                people = None if "*" in changed else [UUID(id_) for id_ in changed]
                await self._people.end_sessions_within(connection, organization_id, people)
            await connection.execute(NOTIFY_ALL, [f"client:{id_}" for id_ in changed])
        for id_ in changed:
            self._people.forget(id_)

    async def users(
        self, organization_id: UUID, condition: Condition | None, offset: int, limit: int
    ) -> tuple[int, Sequence[StoredUser]]:
        """The number of matching users, and some of them, the oldest first."""
        where = _where(organization_id, condition)
        count = f"SELECT count(*) {_USERS} AND {where.text}"
        arguments = tuple(where.arguments)
        find = f"""
            {_SELECT_USERS} AND {where.text} ORDER BY clients.created_at, clients.id
            OFFSET {where.argument(offset)} LIMIT {where.argument(limit)}
        """
        async with self._database.system() as connection:
            total = await connection.fetchval(count, *arguments)
            rows = await connection.fetch(find, *where.arguments) if limit and offset < total else []
        return total, [StoredUser(**row) for row in rows]

    async def user(self, organization_id: UUID, user_id: UUID) -> StoredUser:
        """The user; raises NotFound."""
        async with self._database.system() as connection:
            row = await connection.fetchrow(_USER, organization_id, user_id)
        return StoredUser(**_found(row, "user"))

    async def create_user(
        self, organization_id: UUID, state: UserState, identity: tuple[str, str] | None
    ) -> StoredUser:
        """Add a user, or take over the person whom the identity, an issuer and a subject, names already; raises
        Conflict.
        """
        try:
            async with self._changing(organization_id) as (connection, changed):
                known = identity and await connection.fetchrow(_UNPROVISIONED, organization_id, *identity)
                if known:
                    user_id = known["id"]
                    changed.add(str(user_id))
                    await self._require_free(connection, organization_id, user_id, state)
                    await self._change(connection, organization_id, user_id, state)
                else:
                    await self._require_free(connection, organization_id, uuid4(), state)
                    issuer, subject = identity or (None, None)
                    new = NewPerson(name=name_of(state), email=email_of(state), issuer=issuer, subject=subject)
                    user_id = (await self._people.create_within(connection, organization_id, new, _anything)).id
                    if state.active is False:
                        await self._suspend(connection, organization_id, user_id)
                await self._provision(connection, organization_id, user_id, state)
                return StoredUser(**_found(await connection.fetchrow(_USER, organization_id, user_id), "user"))
        except asyncpg.UniqueViolationError as error:
            raise taken("another person has this subject at the issuer") from error

    async def change_user(
        self, organization_id: UUID, user: StoredUser, state: UserState, identity: tuple[str, str] | None
    ) -> StoredUser | None:
        """Change a user, in every process at once; None if the user is no longer as given. Raises Conflict, NotFound.

        What acts for a user who is suspended ends.
        """
        try:
            async with self._changing(organization_id) as (connection, changed):
                changed.add(str(user.id))
                await connection.execute(_LOCK_USER, user.id)
                row = await connection.fetchrow(_USER, organization_id, user.id)
                if StoredUser(**_found(row, "user")) != user:
                    return None
                await self._require_free(connection, organization_id, user.id, state)
                await self._change(connection, organization_id, user.id, state)
                if identity is not None:
                    await self._people.identify_within(connection, organization_id, user.id, *identity)
                await self._provision(connection, organization_id, user.id, state)
                return StoredUser(**_found(await connection.fetchrow(_USER, organization_id, user.id), "user"))
        except asyncpg.UniqueViolationError as error:
            raise taken("another person has this subject at the issuer") from error

    async def _require_free(
        self, connection: Connection, organization_id: UUID, user_id: UUID, state: UserState
    ) -> None:
        """Raise Conflict if another user has the name."""
        if await connection.fetchval(_IS_TAKEN, organization_id, user_key(state.user_name), user_id):
            raise taken(f"userName {state.user_name!r} is taken")

    async def _change(self, connection: Connection, organization_id: UUID, user_id: UUID, state: UserState) -> None:
        change = PersonChange(name=name_of(state), email=email_of(state))
        if state.active is not None:
            change = replace(change, status=PersonStatus.ACTIVE if state.active else PersonStatus.SUSPENDED)
        await self._people.change_within(connection, organization_id, user_id, change, _anything)

    async def _suspend(self, connection: Connection, organization_id: UUID, user_id: UUID) -> None:
        change = PersonChange(status=PersonStatus.SUSPENDED)
        await self._people.change_within(connection, organization_id, user_id, change, _anything)

    async def _provision(self, connection: Connection, organization_id: UUID, user_id: UUID, state: UserState) -> None:
        attributes = {"displayName": state.display_name, "name": state.name, "emails": state.emails}
        given = msgspec.json.encode({name: value for name, value in attributes.items() if value}).decode()
        key = user_key(state.user_name)
        await connection.execute(_PROVISION, organization_id, user_id, state.user_name, key, state.external_id, given)

    async def groups(
        self, organization_id: UUID, condition: Condition | None, offset: int, limit: int, *, with_members: bool
    ) -> tuple[int, Sequence[StoredGroup]]:
        """The number of matching groups, and some of them by name; fewer if they have many members."""
        where = _where(organization_id, condition)
        count = f"SELECT count(*) FROM groups WHERE organization_id = $1 AND {where.text}"
        arguments = tuple(where.arguments)
        find = f"""
            {_SELECT_GROUPS} AND {where.text} ORDER BY name COLLATE "C"
            OFFSET {where.argument(offset)} LIMIT {where.argument(limit)}
        """
        async with self._database.tenant(organization_id) as connection:
            total = await connection.fetchval(count, *arguments)
            rows = await connection.fetch(find, *where.arguments) if limit and offset < total else []
        found = [StoredGroup(**row) for row in rows]
        return total, _first_of(found) if with_members else found

    async def group(self, organization_id: UUID, group_id: UUID) -> StoredGroup:
        """The group; raises NotFound."""
        async with self._database.tenant(organization_id) as connection:
            return await _group(connection, organization_id, group_id)

    async def members(self, organization_id: UUID, groups: Sequence[StoredGroup], url: str) -> dict[UUID, bytes]:
        """JSON of the members of each group; `url` is that of users, without their ids."""
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(_MEMBERS, organization_id, [each.id for each in groups], url)
        return {row["id"]: row["members"].encode() for row in rows}

    async def create_group(self, organization_id: UUID, change: GroupChange) -> StoredGroup:
        """Add a group without rights; raises Conflict, and MalformedRequest for unknown members."""
        async with self._changing(organization_id) as (connection, changed):
            if await connection.fetchval(_COUNT_GROUPS, organization_id) >= _MAX_GROUPS:
                raise Conflict(f"the organization has {_MAX_GROUPS} groups")
            group_id, external_id = uuid4(), None if change.external_id is UNSET else change.external_id
            await _require_free_name(connection, organization_id, group_id, str(change.name))
            await connection.execute(_INSERT_GROUP, organization_id, group_id, change.name, external_id)
            changed |= await _change_members(connection, organization_id, str(change.name), change.members)
            return await _group(connection, organization_id, group_id)

    async def change_group(self, organization_id: UUID, group_id: UUID, change: GroupChange) -> StoredGroup:
        """Change a group, in every process at once; raises NotFound, and the errors of `create_group`.

        Clients that act for its members do so under its new name too. A group that policies name keeps its name.
        """
        async with self._changing(organization_id) as (connection, changed):
            await connection.execute(_LOCK_GROUP, organization_id, group_id)
            group = await _group(connection, organization_id, group_id)
            name = group.name if change.name is UNSET else change.name
            if name != group.name:
                await _require_free_name(connection, organization_id, group_id, name)
                if await connection.fetchval(_IS_IN_POLICY, organization_id, group.name):
                    raise Conflict(f"policies name the group {group.name!r}; an administrator changes them first")
            external_id = group.external_id if change.external_id is UNSET else change.external_id
            await connection.execute(_CHANGE_GROUP, organization_id, group_id, name, external_id)
            if name != group.name:
                await connection.execute(_RENAME_DELEGATES, organization_id, group.name, name)
                changed.add("*")
            changed |= await _change_members(connection, organization_id, name, change.members)
            return await _group(connection, organization_id, group_id)

    async def delete_group(self, organization_id: UUID, group_id: UUID) -> None:
        """Delete a group: its members lose its rights, and clients no longer act for them. Raises NotFound."""
        async with self._changing(organization_id) as (connection, changed):
            await connection.execute(_LOCK_GROUP, organization_id, group_id)
            group = await _group(connection, organization_id, group_id)
            await connection.execute(_DELETE_GROUP, organization_id, group_id)
            await connection.execute(_REMOVE_DELEGATES, organization_id, group.name)
            changed.add("*")


def _where(organization_id: UUID, condition: Condition | None) -> Where:
    """The clause of a filter; the organization is its first argument."""
    where = Where()
    where.argument(organization_id)
    where.add("true" if condition is None else condition(where))
    return where


def _first_of(groups: Sequence[StoredGroup]) -> Sequence[StoredGroup]:
    """The first groups, as many as have few enough members together; at least one."""
    members = 0
    for place, group in enumerate(groups):
        members += group.members
        if place and members > _MAX_LISTED:
            return groups[:place]
    return groups


async def _group(connection: Connection, organization_id: UUID, group_id: UUID) -> StoredGroup:
    return StoredGroup(**_found(await connection.fetchrow(_GROUP, organization_id, group_id), "group"))


async def _require_free_name(connection: Connection, organization_id: UUID, group_id: UUID, name: str) -> None:
    if await connection.fetchval(_IS_GROUP_TAKEN, organization_id, name, group_id):
        raise taken(f"displayName {name!r} is taken")


def _found(row: Any, what: str) -> Any:
    if row is None:
        raise NotFound(f"there is no such {what}")
    return row


async def _change_members(
    connection: Connection, organization_id: UUID, name: str, changes: Sequence[MembersChange]
) -> set[str]:
    """Add and remove members of a group; returns the ids of those that were, or `*` for many."""
    affected: set[UUID] = set()
    for change in changes:
        if change.remove is None or change.remove:
            removed = await connection.fetch(_LEAVE, organization_id, name, change.remove)
            affected.update(row["client_id"] for row in removed)
        if change.add:
            unknown = await connection.fetchval(_UNKNOWN, organization_id, change.add)
            if unknown is not None:
                raise refused("invalidValue", f"members: there is no user {str(unknown)!r}")
            joined = await connection.fetch(_JOIN, organization_id, name, change.add)
            affected.update(row["client_id"] for row in joined)
    people = sorted(affected)
    if await connection.fetchval(_HAS_TOO_MANY, organization_id, people, MAX_GROUPS) is not None:
        raise refused("invalidValue", f"members: a user may be in {MAX_GROUPS} groups")
    return {"*"} if len(people) > _FEW else {str(each) for each in people}


def _anything(client: object) -> None:
    """A provider manages people of the whole organization."""
