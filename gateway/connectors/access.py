"""The connectors that a caller may use: those of its organization, of its workspaces if it is limited to some, and of
its person if they are personal.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from msgspec.structs import replace

from gateway.access.identity.model import Caller, Scope, id_of
from gateway.access.identity.store import IdentityStore, Workspace
from gateway.connectors.model import ConnectorRecord
from gateway.connectors.store import ConnectorStore
from gateway.connectors.views import as_served
from gateway.contract.connectors import ConnectorSelection, ConnectorStatus
from gateway.errors import FieldError, InsufficientScope, InvalidParams
from gateway.kinds.catalog import Catalog

#: the workspace of new connectors of an organization that has none, or several
_WORKSPACE = "default"


class ConnectorAccess:
    """Look-ups of connectors and workspaces; raises NotFound for a connector that the caller may not see."""

    def __init__(self, store: ConnectorStore, identity: IdentityStore, catalog: Catalog) -> None:
        self._catalog = catalog
        self._store = store
        self._identity = identity

    async def get(self, caller: Caller, connector_id: UUID) -> ConnectorRecord:
        """The record of a connector, `unserved` if its kind is not served."""
        record = as_served(await self._store.get(caller.organization_id, connector_id), self._catalog)
        record.require_usable(caller)
        return record

    async def get_listed(self, caller: Caller, connector_id: UUID) -> ConnectorRecord:
        """The same; an administrator gets personal connectors too, to disable or delete them."""
        record = as_served(await self._store.get(caller.organization_id, connector_id), self._catalog)
        record.require_listed(caller)
        return record

    async def owner_named(self, caller: Caller, owner: str | None) -> UUID | None:
        """The person to whom a new connector belongs: the caller's own for `me`, else a person's id; None if shared.

        Raises InvalidParams, and InsufficientScope unless the caller is an administrator or the person is a user of the
        caller's product.
        """
        person_id = caller.person_id if owner == "me" else id_of(owner)
        if caller.session is not None:
            if owner is not None and person_id != caller.person_id:
                raise InsufficientScope("a session connects for its person only; leave out owner")
            return caller.person_id
        if owner is None or (person_id is not None and person_id == caller.person_id):
            return person_id
        if owner == "me":
            raise _owner_fault("me is for calls that are made as a person; name a person's id")
        is_of_product = person_id is not None and await self._identity.is_in_namespace(person_id, caller.client_id)
        if Scope.ADMIN not in caller.client.scopes and not is_of_product:  # whether there is such a person or not
            raise InsufficientScope(
                "to connect for another person needs the scope admin, or a person of your own product"
            )
        person = None if person_id is None else await self._identity.caller(person_id, caller.organization_id)
        if person is None or not person.client.is_person or not caller.covers(person.client):
            raise _owner_fault("there is no active person with this id")
        return person.client_id

    async def default_workspace(self, caller: Caller) -> str | None:
        """The workspace of new connectors of a caller that names none: one that the client may use, or the
        organization's only one; None for a client that may use none.
        """
        allowed = caller.client.workspaces
        if allowed is not None:
            return min(allowed) if allowed else None
        workspaces = await self.workspaces(caller, limit=2)
        return workspaces[0].name if len(workspaces) == 1 else _WORKSPACE

    async def find(
        self,
        caller: Caller,
        selection: ConnectorSelection | None = None,
        *,
        after: tuple[datetime, UUID] | None = None,
        limit: int | None = None,
        with_personal: bool = False,
    ) -> Sequence[ConnectorRecord]:
        """Matching records that the caller may use, in the order of their creation; all of them without a limit.

        With `with_personal` those of other people too, for administrators.
        """
        found = self.find_as_of(caller, selection, after=after, limit=limit, with_personal=with_personal)
        return (await found)[0]

    async def find_as_of(
        self,
        caller: Caller,
        selection: ConnectorSelection | None = None,
        *,
        after: tuple[datetime, UUID] | None = None,
        limit: int | None = None,
        with_personal: bool = False,
    ) -> tuple[Sequence[ConnectorRecord], datetime | None]:
        """The records of `find`, and the time of which they are, if a replica was read."""
        selection = selection or ConnectorSelection()
        visible = replace(
            selection,
            ids=_within_session(caller, selection.ids),
            workspaces=caller.client.workspaces,
            person_id=caller.person_id,
            with_personal=with_personal and Scope.ADMIN in caller.client.scopes,
            served=list(self._catalog.kinds),
        )
        records, as_of = await self._store.find_as_of(caller.organization_id, visible, after=after, limit=limit)
        return [as_served(record, self._catalog) for record in records], as_of

    async def latest_of_each_kind(self, caller: Caller, limit: int) -> Sequence[ConnectorRecord]:
        """The latest records of each kind, at most `limit` of one kind, in the order of their creation."""
        records = await self._store.latest_of_each_kind(
            caller.organization_id, limit, caller.client.workspaces, caller.person_id
        )
        return [as_served(record, self._catalog) for record in records if caller.reaches(record.id)]

    async def count(self, caller: Caller) -> dict[ConnectorStatus, int]:
        """The number of the caller's connectors by status."""
        return await self._store.count(
            caller.organization_id, caller.client.workspaces, list(self._catalog.kinds), caller.person_id
        )

    async def workspaces(
        self, caller: Caller, name_contains: str | None = None, after: tuple[str, UUID] | None = None, limit: int = 1000
    ) -> Sequence[Workspace]:
        """The caller's workspaces by name."""
        own = caller.client.workspaces
        return await self._identity.workspaces(
            caller.organization_id, name_contains, after, limit, own, caller.person_id
        )


def _within_session(caller: Caller, ids: Collection[UUID] | None) -> Collection[UUID] | None:
    """The selected connectors that the caller's session may use; None for all."""
    reached = None if caller.session is None else caller.session.connectors
    if reached is None or ids is None:
        return ids if reached is None else reached
    return set(ids) & set(reached)


def _owner_fault(reason: str) -> InvalidParams:
    message = f"owner: {reason}"
    return InvalidParams(message, faults=[FieldError("/owner", "owner", "invalid", message)])
