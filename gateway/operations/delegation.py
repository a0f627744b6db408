"""The use cases of sessions: a client opens one for a person, lists and ends them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from gateway.access.audit.log import Audit
from gateway.access.budgets.model import exceeding
from gateway.access.budgets.service import limit_faults
from gateway.access.budgets.store import BudgetStore
from gateway.access.identity.directory import Directory
from gateway.access.identity.model import Caller, Client, PersonSession, Scope, SessionBudget
from gateway.access.identity.patterns import covers, matches
from gateway.access.identity.people import People, Person
from gateway.access.identity.sessions import MAX_SESSIONS, SessionStore, StoredSession
from gateway.access.identity.store import IdentityStore, both
from gateway.access.identity.tokens import hashed, new_secret
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.links.service import ConnectLinks
from gateway.contract.connectors import ConnectorSelection
from gateway.contract.cursors import page_of, read_time_cursor
from gateway.contract.kinds import Effect
from gateway.contract.members import NamedActorView
from gateway.contract.people import NewPerson, PersonSelection
from gateway.contract.sessions import (
    SESSION_SECONDS,
    NewSession,
    OpenedSessionView,
    SessionPage,
    SessionPersonView,
    SessionToolsView,
    SessionView,
)
from gateway.errors import (
    Conflict,
    FieldError,
    InsufficientScope,
    InvalidParams,
    Unauthorized,
    UnknownConnectorType,
)
from gateway.foundation.aio.turns import mapped
from gateway.foundation.db.pool import Database
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Catalog, Kind

#: the scopes that a session may have
_SCOPES = frozenset({Scope.READ, Scope.WRITE})


@dataclass(frozen=True, slots=True)
class _Outline:
    """A session that may be opened."""

    #: the person, with what the person and the client may both do
    person: Client
    session: PersonSession
    scopes: frozenset[str]
    workspaces: frozenset[str] | None
    seconds: int


@dataclass(frozen=True)
class Delegation:
    """Opens, lists and ends sessions."""

    audit: Audit
    database: Database
    catalog: Catalog
    identity: IdentityStore
    people: People
    directory: Directory
    sessions: SessionStore
    budgets: BudgetStore
    connectors: ConnectorAccess
    links: ConnectLinks
    base_url: str

    async def open(self, caller: Caller, new: NewSession) -> OpenedSessionView:
        """Open a session for a person, who is added if the subject is new in the client's namespace.

        In a session it is opened for the same person, and only narrower. Raises InsufficientScope, Conflict, and
        InvalidParams with all faults.
        """
        with self.audit.record("session.open", caller) as entry:
            caller.require(Scope.DELEGATE)
            if caller.client.is_person and caller.session is None:
                raise InsufficientScope("sessions are opened by programs, and in sessions")
            outline = await self._outline(caller, await self._person_client(caller, new), new)
            entry.target = str(outline.session.id)
            return await self._open(caller, outline)

    async def all(self, caller: Caller, cursor: str | None, limit: int) -> SessionPage:
        """The open sessions that the caller sees, the newest first; raises InvalidParams for a foreign cursor."""
        found = await self.sessions.find(caller, before=read_time_cursor(cursor), limit=limit + 1)
        page, next_cursor = page_of(found, limit)
        return SessionPage([_view(each) for each in page], next_cursor)

    async def end(self, caller: Caller, session_id: UUID) -> UUID:
        """End a session, those that were opened in it, and their unfinished jobs; raises NotFound.

        Returns the id of the person.
        """
        with self.audit.record("session.end", caller, target=str(session_id)):
            return await self.sessions.end(caller, session_id)

    async def of_person(self, caller: Caller, person_id: UUID, limit: int) -> Sequence[SessionView]:
        """The latest open sessions in which clients act for this person, of those that the caller sees."""
        found = await self.sessions.find(caller, before=None, limit=limit, person_id=person_id)
        return [_view(each) for each in found]

    async def end_own(self, caller: Caller, session_id: UUID) -> UUID:
        """End a session in which a client acts for the caller, as `end` does."""
        with self.audit.record("session.end", caller, target=str(session_id)):
            return await self.sessions.end(caller, session_id, person_id=caller.client_id)

    async def _person_client(self, caller: Caller, new: NewSession) -> Client:
        """The person for whom the session is, as a client."""
        if caller.session is not None:
            return await self._same_person(caller, new)
        if (new.person_id is None) == (new.subject is None):
            raise InvalidParams(faults=[_fault("person", "name the person by either id or subject")])
        if new.subject is not None:
            return await self._user(caller, new.subject, new)
        assert new.person_id is not None
        person = await self.identity.caller(new.person_id, caller.organization_id)
        if (
            person is None
            or not person.client.is_person
            or not await self.identity.may_act_for(caller.organization_id, caller.client_id, new.person_id)
        ):
            raise InsufficientScope(
                "the client may open sessions for active people of the groups in its delegate_for, and by subject for "
                "users of its own product"
            )
        return person.client

    async def _same_person(self, caller: Caller, new: NewSession) -> Client:
        assert caller.session is not None
        person = await self.people.get(caller.client_id)
        is_same = new.person_id in (None, person.id) and (
            new.subject is None or (person.namespace_id, person.subject) == (caller.session.client_id, new.subject)
        )
        if not is_same:
            raise InvalidParams(faults=[_fault("person", "a session that is opened in another one is for its person")])
        return caller.client

    async def _user(self, caller: Caller, subject: str, new: NewSession) -> Client:
        """The user of the client's product, who is added at the first session."""
        found = await self._named(caller, subject)
        if found is None:
            try:
                await self.directory.create(
                    caller,
                    NewPerson(
                        subject=subject,
                        client_id=caller.client_id,
                        email=new.email,
                        name=new.name,
                        scopes=[Scope.READ, Scope.WRITE],
                        workspaces=None if caller.client.workspaces is None else sorted(caller.client.workspaces),
                    ),
                )
            except InvalidParams as error:
                raise InvalidParams(faults=[_within("person", each) for each in error.faults]) from error
            except Conflict:  # a concurrent request has added the person, or the organization has too many
                if await self._named(caller, subject) is None:
                    raise
            found = await self._named(caller, subject)
        person = None if found is None else await self.identity.caller(found.id, caller.organization_id)
        if person is None:
            raise Conflict("the person is suspended")
        return person.client

    async def _named(self, caller: Caller, subject: str) -> Person | None:
        selection = PersonSelection(client_id=caller.client_id, subject=subject)
        return next(iter(await self.people.find(caller.organization_id, selection, 1)), None)

    async def _outline(self, caller: Caller, person: Client, new: NewSession) -> _Outline:
        """The session that is asked for; raises InvalidParams with all faults, and Unauthorized if the session of the
        caller has ended.
        """
        outer, id_ = caller.session, uuid4()
        person = replace(
            person,
            scopes=person.scopes & caller.client.scopes & _SCOPES,
            workspaces=both(person.workspaces, caller.client.workspaces),
        )
        left = None if outer is None else await self.sessions.seconds_left(caller.organization_id, outer.id)
        if outer is not None and left is None:
            raise Unauthorized("the session has ended")
        allow = None if new.allow is None else await mapped(self._named_pattern, new.allow)
        deny = await mapped(self._named_pattern, new.deny)
        workspaces = None if new.workspace_name is None else frozenset({new.workspace_name})
        usable = Caller(replace(person, workspaces=both(person.workspaces, workspaces)), caller.organization_id)
        faults = [
            *_workspace_faults(usable, person, new),
            *await self._connector_faults(usable, new),
            *await self._pattern_faults("allow", allow or ()),
            *await self._pattern_faults("deny", deny),
            *_narrowing_faults(outer, allow),
            *_effect_faults(outer, person, new),
            *self._budget_faults(outer, new),
            *_time_faults(left, new),
        ]
        if faults:
            raise InvalidParams(faults=faults)
        seconds = new.expires_in or SESSION_SECONDS
        own = () if new.budget is None else (SessionBudget(name=_budget_name(id_), limits=new.budget),)
        inherited = outer or PersonSession(id=id_, client_id=caller.client_id)
        session = PersonSession(
            id=id_,
            client_id=inherited.client_id,
            connectors=inherited.connectors if new.connectors is None else tuple(dict.fromkeys(new.connectors)),
            allow=inherited.allow if allow is None else tuple(allow),
            deny=tuple(dict.fromkeys((*inherited.deny, *deny))),
            effects=inherited.effects if new.effects is None else tuple(dict.fromkeys(new.effects)),
            budgets=(*inherited.budgets, *own),
            issuer_id=inherited.issuer_id,
        )
        only_reads = session.effects is not None and set(session.effects) == {Effect.READ}
        return _Outline(
            person=person,
            session=session,
            scopes=person.scopes - {Scope.WRITE} if only_reads else person.scopes,
            workspaces=usable.client.workspaces,
            seconds=seconds if left is None else min(seconds, max(int(left), 1)),
        )

    async def _open(self, caller: Caller, outline: _Outline) -> OpenedSessionView:
        organization_id, session, token = caller.organization_id, outline.session, new_secret()
        link_id, link_url = await self._link(organization_id, outline)
        async with self.database.tenant(organization_id) as connection, connection.transaction():
            if await self.sessions.is_full(connection, organization_id):
                raise Conflict(f"the organization has {MAX_SESSIONS} sessions; end some")
            expires_at = await self.sessions.insert(
                connection,
                organization_id,
                session,
                person_id=outline.person.id,
                parent_id=None if caller.session is None else caller.session.id,
                scopes=sorted(outline.scopes),
                workspaces=None if outline.workspaces is None else sorted(outline.workspaces),
                link_id=link_id,
                token_hash=hashed(token),
                resource=None if caller.session is None else caller.client.resource,
                seconds=outline.seconds,
            )
            if expires_at is None:
                raise Unauthorized("the client, the person or the session has ended meanwhile")
            for budget in session.budgets[-1:]:
                if budget.name == _budget_name(session.id):
                    await self.budgets.add(connection, organization_id, budget.name, session.id, budget.limits.per)
        person = await self.people.get(outline.person.id)
        return OpenedSessionView(
            id=str(session.id),
            token=token,
            mcp_url=f"{self.base_url}/mcp",
            connect_url=link_url,
            expires_at=expires_at,
            person=SessionPersonView(id=str(person.id), name=person.name, email=person.email, subject=person.subject),
        )

    async def _link(self, organization_id: UUID, outline: _Outline) -> tuple[UUID | None, str | None]:
        """A link with which the person connects an application; none if nothing may be connected."""
        if Scope.WRITE not in outline.person.scopes or outline.session.connectors is not None:
            return None, None
        client = replace(outline.person, workspaces=outline.workspaces, session=outline.session)
        caller = Caller(client, organization_id)
        workspace = await self.connectors.default_workspace(caller)
        if workspace is None:
            return None, None
        link = await self.links.create(caller, workspace, owner="me")
        return UUID(link.id), link.url

    def _named_pattern(self, pattern: str) -> str:
        """The pattern with the kind's name, if it begins with an application's."""
        first, point, rest = pattern.partition(".")
        if "*" in first or not point:
            return pattern
        try:
            return f"{self.catalog.kind(first).name}.{rest}"
        except UnknownConnectorType:
            return pattern

    async def _pattern_faults(self, name: str, patterns: Sequence[str]) -> list[FieldError]:
        """Patterns that have no operation, such as mistyped ones, which would deny nothing."""
        known = await mapped(self._is_known, patterns)
        return [
            FieldError(
                f"/tools/{name}/{index}", f"tools.{name}", "unknown", f"tools.{name}: {pattern!r} has no operation"
            )
            for index, (pattern, is_known) in enumerate(zip(patterns, known, strict=True))
            if not is_known
        ]

    def _is_known(self, pattern: str) -> bool:
        kind = self.catalog.kinds.get(pattern.partition(".")[0])
        kinds = self.catalog.kinds.values() if kind is None else (kind,)
        return any(matches(pattern, operation) for each in kinds for operation in _operations_of(each))

    async def _connector_faults(self, usable: Caller, new: NewSession) -> list[FieldError]:
        """Connectors that the person may not use, in the workspace of the session."""
        if new.connectors is None:
            return []
        found = {each.id for each in await self.connectors.find(usable, ConnectorSelection(ids=new.connectors))}
        return [
            FieldError(
                f"/connectors/{index}",
                "connectors",
                "unknown",
                f"connectors: the person has no connector {connector_id}",
            )
            for index, connector_id in enumerate(new.connectors)
            if connector_id not in found
        ]

    def _budget_faults(self, outer: PersonSession | None, new: NewSession) -> Iterator[FieldError]:
        if new.budget is None:
            return
        for fault in limit_faults(new.budget, self.catalog):
            yield _within("budget", fault)
        for each in () if outer is None else outer.budgets:
            name = exceeding(new.budget, each.limits)
            if name is not None:
                message = f"budget.{name}: the session in which it is opened has less"
                yield FieldError(f"/budget/{name}", f"budget.{name}", "too_many", message)


def _operations_of(kind: Kind) -> Iterator[str]:
    for entity, action in kind.operations:
        yield f"{kind.name}.{entity}.{action}"
    for entity in kind.spec.entities:
        if SEARCH_ACTION in kind.actions_of(entity):
            yield f"{kind.name}.{entity}.{SEARCH_ACTION}"


def _fault(name: str, message: str) -> FieldError:
    return FieldError(f"/{name}", name, "invalid", f"{name}: {message}")


def _within(name: str, fault: FieldError) -> FieldError:
    """A fault of a part of the body, with its place in the whole."""
    return FieldError(f"/{name}{fault.pointer}", f"{name}.{fault.field}", fault.code, f"{name}.{fault.message}")


def _workspace_faults(usable: Caller, person: Client, new: NewSession) -> Iterator[FieldError]:
    if new.workspace_name is not None and not usable.sees(new.workspace_name):
        allowed = ", ".join(sorted(person.workspaces or ()))
        yield _fault("workspace_name", f"the session may have {allowed or 'no workspace'}, not {new.workspace_name!r}")


def _narrowing_faults(outer: PersonSession | None, allow: Sequence[str] | None) -> Iterator[FieldError]:
    """Patterns that allow more than the session in which this one is opened."""
    if outer is None or outer.allow is None:
        return
    for index, pattern in enumerate(allow or ()):
        if not any(covers(each, pattern) for each in outer.allow):
            message = f"tools.allow: the session in which it is opened does not allow all of {pattern!r}"
            yield FieldError(f"/tools/allow/{index}", "tools.allow", "too_many", message)


def _effect_faults(outer: PersonSession | None, person: Client, new: NewSession) -> Iterator[FieldError]:
    for effect in new.effects or ():
        if outer is not None and outer.effects is not None and effect not in outer.effects:
            yield _fault("effects", f"the session in which it is opened has no {effect}")
        elif effect is not Effect.READ and Scope.WRITE not in person.scopes:
            yield _fault("effects", f"{effect} needs the scope write, which the client and the person must both have")


def _time_faults(left: float | None, new: NewSession) -> Iterator[FieldError]:
    if left is not None and new.expires_in is not None and new.expires_in > left:
        yield _fault("expires_in", f"the session in which it is opened ends in {int(left)} seconds")


def _budget_name(session_id: UUID) -> str:
    """No name that an administrator can give to a budget."""
    return f"session {session_id}"


def _view(stored: StoredSession) -> SessionView:
    limits = stored.limits
    own = next((each.limits for each in limits.budgets if each.name == _budget_name(stored.id)), None)
    return SessionView(
        id=str(stored.id),
        person=NamedActorView(id=str(stored.person_id), name=stored.person_name),
        client=NamedActorView(id=str(stored.client_id), name=stored.client_name),
        parent_id=None if stored.parent_id is None else str(stored.parent_id),
        scopes=list(stored.scopes),
        workspaces=None if stored.workspaces is None else list(stored.workspaces),
        connectors=None if limits.connectors is None else [str(each) for each in limits.connectors],
        tools=SessionToolsView(allow=None if limits.allow is None else list(limits.allow), deny=list(limits.deny)),
        effects=None if limits.effects is None else list(limits.effects),
        budget=own,
        created_at=stored.created_at,
        expires_at=stored.expires_at,
    )
