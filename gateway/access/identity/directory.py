"""The use cases of an organization's people and groups, for its administrators."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import UUID

from msgspec import UNSET
from msgspec.structs import asdict, replace

from gateway.access.audit.log import Audit
from gateway.access.identity.clients import MAX_NAME, require_name
from gateway.access.identity.model import Caller, Client, Scope
from gateway.access.identity.people import People, Person
from gateway.access.identity.store import IdentityStore
from gateway.contract.cursors import page_of, read_text_cursor, read_time_cursor, text_cursor
from gateway.contract.people import (
    MAX_GROUPS,
    MAX_WORKSPACES,
    GroupPage,
    GroupView,
    NewPerson,
    PeoplePage,
    PersonChange,
    PersonSelection,
    PersonStatus,
    PersonView,
)
from gateway.errors import Conflict, FieldError, InsufficientScope, InvalidParams, NotFound
from gateway.foundation.db.pool import Connection

#: maximum characters of an email address (RFC 5321 §4.5.3.1), of an issuer, and of a subject (OpenID Connect Core §2)
_MAX_EMAIL, _MAX_ISSUER, _MAX_SUBJECT = 254, 2048, 255


class Directory:
    """Lists, adds, changes and suspends people, and has the groups' rights.

    For an administrator that is limited to workspaces, only people with the same or narrower limits exist.
    """

    def __init__(self, audit: Audit, people: People, identity: IdentityStore) -> None:
        self._audit = audit
        self._people = people
        self._identity = identity

    async def find(
        self, caller: Caller, selection: PersonSelection, cursor: str | None = None, limit: int = 100
    ) -> PeoplePage:
        """Matching people, oldest first; raises InvalidParams for a foreign cursor."""
        own = caller.client.workspaces
        visible = replace(selection, workspaces=None if own is None else sorted(own), after=read_time_cursor(cursor))
        found = await self._people.find(caller.organization_id, visible, limit + 1)
        page, next_cursor = page_of(found, limit)
        return PeoplePage([person_view(each) for each in page], next_cursor)

    async def get(self, caller: Caller, person_id: UUID) -> PersonView:
        """The person; raises NotFound."""
        await self._require_visible(caller, person_id)
        return person_view(await self._people.get(person_id))

    async def create(self, caller: Caller, new: NewPerson) -> PersonView:
        """Add a person; raises InvalidParams with every fault, Conflict, and InsufficientScope for rights in workspaces
        that the caller may not see.
        """
        changed = [name for name, value in asdict(new).items() if value]
        with self._audit.record("person.create", caller, changed=changed) as entry:
            faults = [*name_faults(new.name, new.email), *subject_faults(new), *_rights_faults(asdict(new))]
            if faults:
                raise InvalidParams(faults=faults)
            if new.client_id is not None:
                await self._require_program(caller, new.client_id)
            person = await self._people.create(caller.organization_id, new, _covered_by(caller))
            entry.target = str(person.id)
        return person_view(person)

    async def change(self, caller: Caller, person_id: UUID, change: PersonChange) -> PersonView:
        """Change a person; raises NotFound, Conflict for the suspension of the caller itself, and the errors of
        `create`.
        """
        given = {name: value for name, value in asdict(change).items() if value is not UNSET}
        with self._audit.record("person.update", caller, target=str(person_id), changed=list(given)):
            await self.require_own(caller, person_id)
            faults = [*name_faults(given.get("name"), given.get("email")), *_rights_faults(given)]
            if faults:
                raise InvalidParams(faults=faults)
            if change.status is PersonStatus.SUSPENDED:
                require_another(caller, person_id)
            return person_view(
                await self._people.change(caller.organization_id, person_id, change, _covered_by(caller))
            )

    async def require_own(self, caller: Caller, person_id: UUID) -> None:
        """Raise NotFound unless the person is of this organization alone, and the caller may see the person."""
        client = await self._require_visible(caller, person_id)
        if client.organization_ids != {caller.organization_id}:
            raise NotFound(
                "the person belongs to other organizations too; the operator changes it: gateway admin person"
            )

    async def require_deletable(self, caller: Caller, person_id: UUID) -> None:
        """Raise NotFound, and Conflict for the caller itself."""
        await self.require_own(caller, person_id)
        require_another(caller, person_id)

    async def delete_within(self, connection: Connection, person_id: UUID) -> None:
        """End everything that acts for the person and delete the person, in the caller's own transaction."""
        await self._people.delete_within(connection, person_id)

    async def _require_visible(self, caller: Caller, person_id: UUID) -> Client:
        client = await self._client(caller, person_id)
        if client is None or not client.is_person:
            raise NotFound("there is no such person")
        return client

    async def _require_program(self, caller: Caller, client_id: UUID) -> None:
        client = await self._client(caller, client_id)
        if client is None or client.is_person:
            raise InvalidParams(faults=[_fault("client_id", "there is no such client; GET /api/v1/clients lists them")])

    async def _client(self, caller: Caller, client_id: UUID) -> Client | None:
        """A client that acts for the caller's organization, within the caller's workspaces."""
        stored = await self._identity.client(client_id)
        if stored is None or caller.organization_id not in stored.client.organization_ids:
            return None
        return stored.client if caller.covers(stored.client) else None

    async def groups(
        self, caller: Caller, *, containing: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> GroupPage:
        """Groups whose names contain the text, by name; raises InvalidParams for a foreign cursor, and
        InsufficientScope for a caller that is limited to workspaces.
        """
        caller.require_whole_organization()
        after = read_text_cursor(cursor)
        found = await self._people.groups(caller.organization_id, containing, after, limit + 1)
        page = found[:limit]
        return GroupPage(list(page), text_cursor(page[-1].name) if len(found) > limit else None)

    async def group(self, caller: Caller, name: str) -> GroupView:
        """The group; raises NotFound, and InsufficientScope for a caller that is limited to workspaces."""
        caller.require_whole_organization()
        return await self._people.group(caller.organization_id, name)

    async def put_group(self, caller: Caller, group: GroupView) -> GroupView:
        """Create the group or replace its rights; raises InvalidParams, and InsufficientScope for a caller that is
        limited to workspaces.
        """
        changed = ["workspaces", "scopes"]
        with self._audit.record("group.update", caller, target=group.name, changed=changed):
            caller.require_whole_organization()
            faults = [*_rights_faults({"workspaces": group.workspaces, "scopes": group.scopes})]
            if faults:
                raise InvalidParams(faults=faults)
            require_name(group.name)
            return await self._people.put_group(caller.organization_id, group)


def person_view(person: Person) -> PersonView:
    """The person for the response."""
    return PersonView(
        id=str(person.id),
        email=person.email,
        name=person.name,
        issuer=person.issuer,
        subject=person.subject,
        client_id=None if person.namespace_id is None else str(person.namespace_id),
        groups=list(person.groups),
        workspaces=None if person.workspaces is None else list(person.workspaces),
        scopes=list(person.scopes),
        status=person.status,
        created_at=person.created_at,
        last_seen_at=person.last_seen_at,
    )


def _covered_by(caller: Caller) -> Callable[[Client], None]:
    """A check that the caller may see every workspace of a client."""

    def check(client: Client) -> None:
        if not caller.covers(client):
            allowed = ", ".join(sorted(caller.client.workspaces or ()))
            raise InsufficientScope(f"you are limited to the workspaces {allowed}; the person would see others")

    return check


def require_another(caller: Caller, person_id: UUID) -> None:
    """Raise Conflict for the caller itself."""
    if person_id == caller.client_id:
        raise Conflict("you cannot suspend or delete yourself; another administrator can")


def _fault(name: str, message: str) -> FieldError:
    return FieldError(f"/{name}", name, "invalid", f"{name}: {message}")


def name_faults(name: str | None, email: str | None) -> Iterator[FieldError]:
    """The faults of a person's name and email address, either of which may be missing."""
    if name is not None and not (0 < len(name) <= MAX_NAME and name.isprintable()):
        yield _fault("name", f"must be 1 to {MAX_NAME} printable characters")
    local, _, domain = (email or "a@b").rpartition("@")
    if not (local and domain) or len(email or "") > _MAX_EMAIL or not (email or "a").isprintable():
        yield _fault("email", f"must be an address of at most {_MAX_EMAIL} printable characters")


def subject_faults(new: NewPerson) -> Iterator[FieldError]:
    """The faults of what identifies the person: a subject of an issuer or of a client, or nothing yet."""
    subject, issuer = new.subject, new.issuer
    if subject is not None and not (0 < len(subject) <= _MAX_SUBJECT and subject.isprintable()):
        yield _fault("subject", f"must be 1 to {_MAX_SUBJECT} printable characters")
    if issuer is not None and not (
        issuer.startswith("https://") and len(issuer) <= _MAX_ISSUER and issuer.isprintable()
    ):
        yield _fault("issuer", f"must be an https URL of at most {_MAX_ISSUER} characters")
    if issuer is not None and new.client_id is not None:
        yield _fault("client_id", "a subject is either of an issuer or of a client; leave out one of them")
    elif subject is None and (issuer is not None or new.client_id is not None):
        yield _fault("subject", "is needed with issuer or client_id")
    elif subject is not None and issuer is None and new.client_id is None:
        yield _fault("subject", "needs issuer or client_id, which say whose subject it is")


def _rights_faults(given: Mapping[str, Any]) -> Iterator[FieldError]:
    """The faults of scopes, workspaces and groups."""
    for name, most in (("groups", MAX_GROUPS), ("workspaces", MAX_WORKSPACES), ("scopes", len(Scope))):
        names = given.get(name) or ()
        if len(names) > most:
            yield _fault(name, f"has more than {most} names")
        elif not all(0 < len(each) <= MAX_NAME and each.isprintable() for each in names):
            yield _fault(name, f"must be names of 1 to {MAX_NAME} printable characters")
