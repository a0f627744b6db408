"""People in PostgreSQL; each is a client without a secret, and may be a member of groups."""

import string
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import asyncpg
from msgspec import UNSET
from msgspec.structs import asdict

from gateway.access.identity.model import Client
from gateway.access.identity.store import WORKSPACES, IdentityStore
from gateway.contract.people import (
    GroupView,
    ListedGroupView,
    NewPerson,
    PersonChange,
    PersonSelection,
    PersonStatus,
)
from gateway.errors import Conflict, FieldError, Forbidden, InvalidParams, NotFound, Unavailable
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.db.where import Where

#: maximum people, and groups, of an organization
_MAX_PEOPLE, _MAX_GROUPS = 100_000, 10_000

_INSERT = """
    INSERT INTO people (client_id, named_in, login, email, name, issuer, subject, namespace_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
_SELECT = """
    SELECT people.client_id AS id, login, email, people.name, issuer, subject, namespace_id, last_seen_at,
           clients.scopes, clients.workspaces, clients.created_at, clients.disabled_at,
           ARRAY(SELECT group_name FROM group_members WHERE group_members.client_id = people.client_id ORDER BY 1)
               AS groups
    FROM people JOIN clients ON clients.id = people.client_id
"""
_ALL = f"{_SELECT} ORDER BY login, clients.created_at, clients.id"
_GET = f"{_SELECT} WHERE people.client_id = $1"
_LOCK = "SELECT id FROM clients WHERE id = $1 FOR NO KEY UPDATE"
_IN_ORGANIZATION = """
    EXISTS (SELECT FROM client_organizations WHERE client_id = people.client_id AND organization_id = {})
"""
_IN_GROUP = """
    people.client_id IN (SELECT client_id FROM group_members WHERE organization_id = {} AND group_name = {})
"""
# Locks the organization's row, so that concurrent requests do not exceed a limit together.
_LOCK_ORGANIZATION = "SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE"
# The unique index has people of one organization, and people whom the operator has added.
_IS_NAMED = f"""
    SELECT EXISTS (SELECT FROM people WHERE {_IN_ORGANIZATION.format("$1")} AND issuer = $2 AND subject = $3
                   AND client_id <> $4)
"""
_COUNT = f"SELECT count(*) FROM people WHERE {_IN_ORGANIZATION.format('$1')}"
_CONTAINING = """
    (strpos(lower(people.name), lower({0}::text)) > 0 OR strpos(lower(email), lower({0}::text)) > 0
     OR strpos(lower(subject), lower({0}::text)) > 0 OR strpos(lower(login), lower({0}::text)) > 0)
"""
_IDENTIFY = """
    UPDATE people SET issuer = $2, subject = $3
    WHERE client_id = $1 AND namespace_id IS NULL AND (issuer IS NULL OR issuer = $2)
"""
_UPDATE = "UPDATE people SET email = $2, name = $3 WHERE client_id = $1"
# The update notifies every process.
_UPDATE_CLIENT = "UPDATE clients SET name = $2, scopes = $3, workspaces = $4 WHERE id = $1"
_ENABLE = "UPDATE clients SET disabled_at = NULL WHERE id = $1"
_LEAVE_GROUPS = "DELETE FROM group_members WHERE organization_id = $1 AND client_id = $2"
# A provider may add the person at the same moment; that row is returned too.
_JOIN_GROUPS = """
    INSERT INTO group_members (organization_id, group_name, client_id)
    SELECT organization_id, name, $2 FROM groups WHERE organization_id = $1 AND name = ANY ($3) ORDER BY name
    ON CONFLICT (organization_id, group_name, client_id) DO UPDATE SET client_id = EXCLUDED.client_id
    RETURNING group_name
"""
_GROUP = "SELECT name, workspaces, scopes FROM groups WHERE organization_id = $1 AND name = $2"
_GROUPS = """
    SELECT name, workspaces, scopes,
           (SELECT count(*) FROM group_members AS member
            WHERE member.organization_id = groups.organization_id AND member.group_name = groups.name) AS members
    FROM groups
    WHERE organization_id = $1 AND ($2::text IS NULL OR strpos(lower(name), lower($2)) > 0)
      AND ($3::text IS NULL OR name > $3)
    ORDER BY name LIMIT $4
"""
_KNOWN_GROUPS = "SELECT name FROM groups WHERE organization_id = $1 AND name = ANY ($2::text[]) ORDER BY name"
_COUNT_GROUPS = "SELECT count(*) FROM groups WHERE organization_id = $1 AND name <> $2"
_PUT_GROUP = """
    INSERT INTO groups (organization_id, name, workspaces, scopes) VALUES ($1, $2, $3, $4)
    ON CONFLICT (organization_id, name) DO UPDATE SET workspaces = EXCLUDED.workspaces, scopes = EXCLUDED.scopes
"""
# One notification for thousands of members.
_NOTIFY_ALL = "SELECT pg_notify('gateway', 'client:*')"
_SEEN = """
    UPDATE people SET last_seen_at = now() WHERE issuer = $1 AND subject = ANY ($2::text[]) RETURNING client_id, subject
"""
# The first sign-in with a login binds the login to that account, unless another login has it.
_BIND = """
    UPDATE people SET issuer = $1, subject = $2
    WHERE login = $3 AND subject IS NULL AND NOT EXISTS (
        SELECT FROM people AS bound WHERE bound.issuer = $1 AND bound.subject = $2 AND bound.named_in IS NULL)
"""
_BY_LOGIN = "SELECT client_id FROM people WHERE login = $1"
_DELETE = "DELETE FROM people WHERE client_id = $1"
_LEAVE = "DELETE FROM group_members WHERE client_id = $1"


#: lower case of ASCII letters only
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class SignInRefused(Forbidden):
    code, title = "sign_in_refused", "You are not signed in"


class ProviderUnavailable(Unavailable):
    code, title = "provider_unavailable", "The sign-in provider is unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person: an employee who signs in through a provider, or a user of a client's own product."""

    #: that of the person's client
    id: UUID
    #: the value of the claim by which the operator's provider names the person at the first sign-in
    login: str | None = None
    #: never identifies the person
    email: str | None = None
    name: str | None = None
    #: the provider's identifier of the person; None before the first sign-in
    issuer: str | None = None
    subject: str | None = None
    #: the client in whose namespace the subject is
    namespace_id: UUID | None = None
    groups: Sequence[str] = ()
    #: the rights beside those of the groups
    scopes: Sequence[str] = ()
    workspaces: Sequence[str] | None = None
    created_at: datetime
    disabled_at: datetime | None = None
    last_seen_at: datetime | None = None

    @property
    def status(self) -> PersonStatus:
        return PersonStatus.ACTIVE if self.disabled_at is None else PersonStatus.SUSPENDED


class People:
    """The people of all organizations, the client of each, and the groups.

    `forget` lets this process forget what it has cached of a person, by id, or of all (`*`), once a change is
    committed, so that the next call is decided by it; other processes are notified.
    """

    def __init__(
        self, database: Database, identity: IdentityStore, forget: Callable[[str], None] = lambda _: None
    ) -> None:
        self._database = database
        self._identity = identity
        self.forget = forget

    async def add(self, login: str, organization_ids: Sequence[UUID], scopes: Sequence[str]) -> Person:
        """Let a person sign in with this login, as a new client of that name; raises Conflict and NotFound."""
        client_id = uuid4()
        try:
            async with self._database.system() as connection, connection.transaction():
                await self._identity.insert_client(
                    connection,
                    client_id,
                    name=login,
                    organization_ids=organization_ids,
                    secret_hashes=[],
                    scopes=scopes,
                )
                await connection.execute(_INSERT, client_id, None, login, None, None, None, None, None)
                return await _person(connection, client_id)
        except asyncpg.UniqueViolationError as error:
            raise Conflict(f"there is a person {login!r} already") from error

    async def all(self) -> Sequence[Person]:
        """The people of all organizations, for the operator."""
        async with self._database.system() as connection:
            return [Person(**row) for row in await connection.fetch(_ALL)]

    async def find(self, organization_id: UUID, selection: PersonSelection, limit: int) -> Sequence[Person]:
        """Matching people of the organization, oldest first."""
        where = Where()
        where.add(_IN_ORGANIZATION, organization_id)
        where.add(_CONTAINING, selection.containing)
        where.add("(clients.disabled_at IS NULL) = {}", _is_active(selection.status))
        where.add(_IN_GROUP, None if selection.group is None else organization_id, selection.group)
        where.add("people.issuer = {}", selection.issuer)
        where.add("people.subject = {}", selection.subject)
        where.add("people.namespace_id = {}", selection.client_id)
        where.add(f"({WORKSPACES}) <@ {{}}::text[]", selection.workspaces)
        where.add("(clients.created_at, clients.id) > ({}, {})", *(selection.after or (None, None)))
        find = f"{_SELECT} WHERE {where.text} ORDER BY clients.created_at, clients.id LIMIT {where.argument(limit)}"
        async with self._database.system() as connection:
            return [Person(**row) for row in await connection.fetch(find, *where.arguments)]

    async def get(self, person_id: UUID) -> Person:
        """The person of any organization; raises NotFound."""
        async with self._database.system() as connection:
            return await _person(connection, person_id)

    async def create(self, organization_id: UUID, new: NewPerson, check: Callable[[Client], None]) -> Person:
        """Add a person to the organization; `check` may refuse the rights of the person's client.

        Raises Conflict if another person of the organization has the subject, and InvalidParams for unknown groups.
        """
        try:
            async with self._database.system() as connection, connection.transaction():
                await connection.execute(_LOCK_ORGANIZATION, organization_id)
                return await self.create_within(connection, organization_id, new, check)
        except asyncpg.UniqueViolationError as error:
            raise Conflict("there is a person with this subject already") from error

    async def create_within(
        self, connection: Connection, organization_id: UUID, new: NewPerson, check: Callable[[Client], None]
    ) -> Person:
        """The same in the caller's own transaction, which has locked the organization; raises UniqueViolationError."""
        person_id = uuid4()
        if await connection.fetchval(_COUNT, organization_id) >= _MAX_PEOPLE:
            raise Conflict(f"the organization has {_MAX_PEOPLE} people; delete some")
        await _require_unnamed(connection, organization_id, person_id, new.issuer, new.subject)
        await self._identity.insert_client(
            connection,
            person_id,
            name=_display_name(new.name, new.email, new.subject, person_id),
            organization_ids=[organization_id],
            secret_hashes=[],
            scopes=_unique(new.scopes),
            workspaces=None if new.workspaces is None else _unique(new.workspaces),
        )
        named = (new.email, new.name, new.issuer, new.subject, new.client_id)
        await connection.execute(_INSERT, person_id, organization_id, None, *named)
        await self._join(connection, organization_id, person_id, new.groups)
        check(await self._identity.client_within(connection, person_id))
        return await _person(connection, person_id)

    async def change(
        self, organization_id: UUID, person_id: UUID, change: PersonChange, check: Callable[[Client], None]
    ) -> Person:
        """Change a person of this organization alone; every process is notified. Raises the errors of `create`.

        A suspended person's tokens, sessions and grants end; they do not come back when the person is active again.
        """
        async with self._database.system() as connection, connection.transaction():
            changed = await self.change_within(connection, organization_id, person_id, change, check)
        self.forget(str(person_id))
        return changed

    async def change_within(
        self,
        connection: Connection,
        organization_id: UUID,
        person_id: UUID,
        change: PersonChange,
        check: Callable[[Client], None],
    ) -> Person:
        """The same in the caller's own transaction."""
        await connection.execute(_LOCK, person_id)
        person = await _person(connection, person_id)
        given = {name: value for name, value in asdict(change).items() if value is not UNSET}
        email, name = given.get("email", person.email), given.get("name", person.name)
        scopes, workspaces = given.get("scopes", person.scopes), given.get("workspaces", person.workspaces)
        if "groups" in given:
            await connection.execute(_LEAVE_GROUPS, organization_id, person_id)
            await self._join(connection, organization_id, person_id, given["groups"])
            await self._identity.end_sessions_within(connection, organization_id, people=[person_id])
        await connection.execute(_UPDATE, person_id, email, name)
        display_name = _display_name(name, email, person.login or person.subject, person_id)
        rights = _unique(scopes), None if workspaces is None else _unique(workspaces)
        await connection.execute(_UPDATE_CLIENT, person_id, display_name, *rights)
        check(await self._identity.client_within(connection, person_id))
        if change.status is PersonStatus.SUSPENDED:
            await self._identity.disable_client_within(connection, person_id)
        elif change.status is PersonStatus.ACTIVE:
            await connection.execute(_ENABLE, person_id)
        return await _person(connection, person_id)

    async def _join(
        self, connection: Connection, organization_id: UUID, person_id: UUID, groups: Sequence[str]
    ) -> None:
        joined = {
            row["group_name"]
            for row in await connection.fetch(_JOIN_GROUPS, organization_id, person_id, _unique(groups))
        }
        unknown = [name for name in groups if name not in joined]
        if unknown:
            messages = [f"there is no group {name!r}; create it with PUT /api/v1/groups/{{name}}" for name in unknown]
            raise InvalidParams(faults=[FieldError("/groups", "groups", "unknown", each) for each in messages])

    async def identify_within(
        self, connection: Connection, organization_id: UUID, person_id: UUID, issuer: str, subject: str
    ) -> None:
        """Let the person sign in as this subject, unless another issuer or a client names the person; raises
        UniqueViolationError if it is another person's.
        """
        await _require_unnamed(connection, organization_id, person_id, issuer, subject)
        await connection.execute(_IDENTIFY, person_id, issuer, subject)

    async def end_sessions_within(
        self, connection: Connection, organization_id: UUID, people: Collection[UUID] | None
    ) -> None:
        """End the sessions for people who have left groups, or for all, in which a client may no longer act."""
        await self._identity.end_sessions_within(connection, organization_id, people=people)

    async def delete_within(self, connection: Connection, person_id: UUID) -> None:
        """Delete a person in the caller's own transaction. The client stays, disabled, for the audit log."""
        await self._identity.disable_client_within(connection, person_id)
        await connection.execute(_LEAVE, person_id)
        await connection.execute(_DELETE, person_id)

    async def remove(self, login: str) -> UUID:
        """Remove a person: disable their client, with its tokens and sessions. The client stays for the audit log."""
        async with self._database.system() as connection, connection.transaction():
            client_id: UUID | None = await connection.fetchval(_BY_LOGIN, login)
            if client_id is None:
                raise NotFound(f"there is no person {login!r}")
            await self.delete_within(connection, client_id)
        return client_id

    async def signed_in(self, issuer: str, subject: str, login: str, named: str | None = None) -> Sequence[Client]:
        """The enabled clients of the provider's account: one for each organization that has added the person, and one
        if the operator has. None for an unknown person.

        `named` is another identifier of the provider by which administrators and SCIM may have added the person.
        """
        subjects = [subject] if named is None else [subject, named]
        async with self._database.system() as connection:
            await connection.execute(_BIND, issuer, subject, login)
            rows = await connection.fetch(_SEEN, issuer, subjects)
        ids = [row["client_id"] for row in sorted(rows, key=lambda row: subjects.index(row["subject"]))]
        clients = [await self._identity.enabled_client(each) for each in ids]
        return [each for each in clients if each is not None]

    async def group(self, organization_id: UUID, name: str) -> GroupView:
        """The group; raises NotFound."""
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_GROUP, organization_id, name)
        if row is None:
            raise NotFound("there is no such group")
        return GroupView(**row)

    async def groups(
        self, organization_id: UUID, containing: str | None, after: str | None, limit: int
    ) -> Sequence[ListedGroupView]:
        """Groups whose names contain the text, by name; `after` is the last name of the previous page."""
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(_GROUPS, organization_id, containing, after, limit)
        return [ListedGroupView(**row) for row in rows]

    async def known_groups(self, organization_id: UUID, names: Sequence[str]) -> Sequence[str]:
        """The groups of the organization among these names."""
        async with self._database.tenant(organization_id) as connection:
            return [row["name"] for row in await connection.fetch(_KNOWN_GROUPS, organization_id, names)]

    async def put_group(self, organization_id: UUID, group: GroupView) -> GroupView:
        """Create the group or replace its rights; every process is notified. Raises Conflict if there are too many."""
        stored = GroupView(
            group.name, None if group.workspaces is None else _unique(group.workspaces), _unique(group.scopes)
        )
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            await connection.execute(_LOCK_ORGANIZATION, organization_id)
            if await connection.fetchval(_COUNT_GROUPS, organization_id, group.name) >= _MAX_GROUPS:
                raise Conflict(f"the organization has {_MAX_GROUPS} groups")
            await connection.execute(_PUT_GROUP, organization_id, stored.name, stored.workspaces, stored.scopes)
            await connection.execute(_NOTIFY_ALL)
        self.forget("*")
        return stored


async def _require_unnamed(
    connection: Connection, organization_id: UUID, person_id: UUID, issuer: str | None, subject: str | None
) -> None:
    """Raise UniqueViolationError, as the index does, if the subject is another person's of the organization."""
    if await connection.fetchval(_IS_NAMED, organization_id, issuer, subject, person_id):
        raise asyncpg.UniqueViolationError("the subject is that of another person of the organization")


async def _person(connection: Connection, person_id: UUID) -> Person:
    row: Any = await connection.fetchrow(_GET, person_id)
    if row is None:
        raise NotFound("there is no such person")
    return Person(**row)


def _is_active(status: PersonStatus | None) -> bool | None:
    return None if status is None else status is PersonStatus.ACTIVE


def _display_name(*names: object) -> str:
    """The first name that is known: how the audit log names the person."""
    return str(next(name for name in names if name))


def _unique(names: Sequence[str]) -> list[str]:
    """The names without repetitions, sorted."""
    return sorted(set(names))


def login_of(claim: str, value: str) -> str:
    """The login in its stored form: an email address has its ASCII letters in lower case.

    Other letters are not folded: Unicode folds the Kelvin sign (U+212A) to `k`, which would be another person's login.
    """
    return value.strip(" ").translate(_LOWER) if claim == "email" else value.strip(" ")
