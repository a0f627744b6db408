"""The use cases of providers: users and groups of SCIM 2.0. Each takes and returns the documents of RFC 7643.

The import of `scim2-models` takes seconds of processor time: `gateway.access.services` imports this module in a thread,
when the first request of a provider arrives.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from gateway.access.audit.log import Audit
from gateway.access.identity.clients import require_name
from gateway.access.identity.directory import name_faults, require_another, subject_faults
from gateway.access.identity.model import Caller
from gateway.access.provisioning import filters, resources
from gateway.access.provisioning.model import StoredUser, email_of, name_of
from gateway.access.provisioning.refusals import refused
from gateway.access.provisioning.store import ProvisioningStore
from gateway.access.provisioning.tokens import ScimTokens
from gateway.contract.people import NewPerson
from gateway.contract.scim import (
    LIST_SCHEMA,
    SCIM,
    GroupChange,
    ProviderIdentity,
    ScimQuery,
    SubjectAttribute,
    UserState,
)
from gateway.errors import Conflict, InvalidParams, NotFound
from gateway.foundation.aio.turns import in_thread, mapped

#: times that a patch is computed if the user changes at the same time
_TRIES = 3
#: the changes of a user that the audit log names
_MEMBERS = ("user_name", "external_id", "display_name", "name", "emails", "active")


class Provisioning:
    """Users and groups of the whole organization."""

    def __init__(self, audit: Audit, store: ProvisioningStore, tokens: ScimTokens, *, base_url: str) -> None:
        self._audit = audit
        self._store = store
        self._tokens = tokens
        self._url = f"{base_url}{SCIM}"

    async def users(self, caller: Caller, query: ScimQuery) -> dict[str, Any]:
        """A page of users; raises MalformedRequest for the filter."""
        caller.require_whole_organization()
        shown = resources.response_parameters(resources.ScimUser, query)
        condition = None
        if query.filter is not None:
            node = await in_thread(partial(resources.parsed_filter, resources.ScimUser), query.filter)
            condition = partial(filters.condition, node, filters.USERS)
        total, found = await self._store.users(caller.organization_id, condition, query.start_index - 1, query.count)
        return _page(query, total, await mapped(lambda user: resources.user_document(user, self._url, shown), found))

    async def user(self, caller: Caller, user_id: UUID, query: ScimQuery) -> dict[str, Any]:
        """The user; raises NotFound."""
        caller.require_whole_organization()
        return self._document(await self._store.user(caller.organization_id, user_id), query)

    async def require_user(self, caller: Caller, user_id: UUID) -> None:
        """Raise NotFound unless the person is a user."""
        caller.require_whole_organization()
        await self._store.user(caller.organization_id, user_id)

    async def create_user(self, caller: Caller, document: Mapping[str, Any], query: ScimQuery) -> dict[str, Any]:
        """Add a user; raises MalformedRequest, and Conflict for a name that is taken."""
        with self._audit.record("person.create", caller) as entry:
            caller.require_whole_organization()
            state = await in_thread(resources.read_user, document)
            identity = _identity(await self._tokens.identity_of(caller), state)
            _require_storable(state, identity)
            entry.changed = sorted(name for name in _MEMBERS if getattr(state, name) not in (None, {}, []))
            user = await self._store.create_user(caller.organization_id, state, identity)
            entry.target = str(user.id)
        return self._document(user, query)

    async def replace_user(
        self, caller: Caller, user_id: UUID, document: Mapping[str, Any], query: ScimQuery
    ) -> dict[str, Any]:
        """Replace what a provider says of a user; raises NotFound and the errors of `create_user`."""
        return await self._changed(caller, user_id, lambda user: resources.read_user(document), query)

    async def patch_user(
        self, caller: Caller, user_id: UUID, document: Mapping[str, Any], query: ScimQuery
    ) -> dict[str, Any]:
        """Change a user by the operations of a patch; raises NotFound and the errors of `create_user`."""
        return await self._changed(caller, user_id, lambda user: resources.patched_user(user, document), query)

    async def _changed(
        self, caller: Caller, user_id: UUID, change: Callable[[StoredUser], UserState], query: ScimQuery
    ) -> dict[str, Any]:
        with self._audit.record("person.update", caller, target=str(user_id)) as entry:
            caller.require_whole_organization()
            known = await self._tokens.identity_of(caller)
            for _ in range(_TRIES):
                user = await self._store.user(caller.organization_id, user_id)
                state = await in_thread(change, user)
                identity = _identity(known, state)
                _require_storable(state, identity)
                if state.active is False:
                    require_another(caller, user_id)
                before = await in_thread(resources.state_of, user)
                entry.changed = sorted(name for name in _MEMBERS if getattr(state, name) != getattr(before, name))
                changed = await self._store.change_user(caller.organization_id, user, state, identity)
                if changed is not None:
                    return self._document(changed, query)
        raise Conflict("the user changes at the same time; send the request again")

    def _document(self, user: StoredUser, query: ScimQuery) -> dict[str, Any]:
        return resources.user_document(user, self._url, resources.response_parameters(resources.ScimUser, query))

    async def groups(self, caller: Caller, query: ScimQuery) -> dict[str, Any]:
        """A page of groups; raises MalformedRequest for the filter."""
        caller.require_whole_organization()
        shown = resources.response_parameters(resources.ScimGroup, query)
        with_members, condition = resources.has_members(shown), None
        if query.filter is not None:
            node = await in_thread(partial(resources.parsed_filter, resources.ScimGroup), query.filter)
            condition = partial(filters.condition, node, filters.GROUPS)
        whose, start = caller.organization_id, query.start_index - 1
        total, found = await self._store.groups(whose, condition, start, query.count, with_members=with_members)
        members = await self._store.members(whose, found, f"{self._url}/Users/") if with_members else {}
        documents = await mapped(
            lambda group: resources.group_document(group, members.get(group.id, b"[]"), self._url, shown), found
        )
        return _page(query, total, documents)

    async def group(self, caller: Caller, group_id: UUID, query: ScimQuery) -> dict[str, Any]:
        """The group; raises NotFound."""
        caller.require_whole_organization()
        shown = resources.response_parameters(resources.ScimGroup, query)
        group, members = await self._store.group(caller.organization_id, group_id), b"[]"
        if resources.has_members(shown):
            found = await self._store.members(caller.organization_id, [group], f"{self._url}/Users/")
            members = found.get(group.id, members)
        return resources.group_document(group, members, self._url, shown)

    async def create_group(self, caller: Caller, document: Mapping[str, Any], query: ScimQuery) -> dict[str, Any]:
        """Add a group, which has no rights yet; raises MalformedRequest, InvalidParams and Conflict."""
        with self._audit.record("group.create", caller, changed=["members"]) as entry:
            caller.require_whole_organization()
            change = await in_thread(resources.read_group, document)
            require_name(str(change.name))
            entry.target = str(change.name)
            group = await self._store.create_group(caller.organization_id, change)
        return await self.group(caller, group.id, query)

    async def replace_group(
        self, caller: Caller, group_id: UUID, document: Mapping[str, Any], query: ScimQuery
    ) -> dict[str, Any]:
        """Replace a group and, if the document has members, these; raises NotFound and the errors of `create_group`."""
        return await self._change_group(caller, group_id, resources.read_group, document, query)

    async def patch_group(
        self, caller: Caller, group_id: UUID, document: Mapping[str, Any], query: ScimQuery
    ) -> dict[str, Any]:
        """Change a group by the operations of a patch; raises NotFound and the errors of `create_group`."""
        return await self._change_group(caller, group_id, resources.group_change, document, query)

    async def _change_group(
        self,
        caller: Caller,
        group_id: UUID,
        read: Callable[[Mapping[str, Any]], GroupChange],
        document: Mapping[str, Any],
        query: ScimQuery,
    ) -> dict[str, Any]:
        with self._audit.record("group.update", caller) as entry:
            caller.require_whole_organization()
            change = await in_thread(read, document)
            named = {"name": change.name, "external_id": change.external_id, "members": change.members or msgspec.UNSET}
            entry.changed = sorted(name for name, value in named.items() if value is not msgspec.UNSET)
            if change.name is not msgspec.UNSET:
                require_name(change.name)
            entry.target = (await self._store.group(caller.organization_id, group_id)).name
            await self._store.change_group(caller.organization_id, group_id, change)
        return await self.group(caller, group_id, query)

    async def delete_group(self, caller: Caller, group_id: UUID) -> None:
        """Delete a group: its members lose its rights. Raises NotFound."""
        with self._audit.record("group.delete", caller) as entry:
            caller.require_whole_organization()
            entry.target = (await self._store.group(caller.organization_id, group_id)).name
            await self._store.delete_group(caller.organization_id, group_id)

    def provider_config(self) -> dict[str, Any]:
        """What the endpoints support."""
        return resources.provider_config(self._url)

    def schemas(self) -> dict[str, Any]:
        """The schemas of users and groups."""
        return _all(resources.schemas(self._url))

    def schema(self, schema_id: str) -> dict[str, Any]:
        """The schema; raises NotFound."""
        return _named(resources.schemas(self._url), schema_id, "schema")

    def resource_types(self) -> dict[str, Any]:
        """The types of resources."""
        return _all(resources.resource_types(self._url))

    def resource_type(self, name: str) -> dict[str, Any]:
        """The type of resources; raises NotFound."""
        return _named(resources.resource_types(self._url), name, "resource type")


def _page(query: ScimQuery, total: int, documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "schemas": [LIST_SCHEMA],
        "totalResults": total,
        "startIndex": query.start_index,
        "itemsPerPage": len(documents),
        "Resources": documents,
    }


def _all(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return _page(ScimQuery(), len(documents), documents)


def _named(documents: Sequence[dict[str, Any]], wanted: str, what: str) -> dict[str, Any]:
    found = next((each for each in documents if each["id"].lower() == wanted.lower()), None)
    if found is None:
        raise NotFound(f"there is no such {what}")
    return found


def _identity(known: ProviderIdentity | None, state: UserState) -> tuple[str, str] | None:
    """The issuer and the subject of the user when the user signs in."""
    if known is None:
        return None
    subject = state.user_name if known.subject is SubjectAttribute.USER_NAME else state.external_id
    return (known.issuer, subject) if subject else None


def _require_storable(state: UserState, identity: tuple[str, str] | None) -> None:
    """Raise InvalidParams for a name, an address or a subject that no person has."""
    issuer, subject = identity or (None, None)
    # The issuer was checked with the token; it may be the operator's own without TLS.
    named = NewPerson(issuer=issuer and "https://issuer", subject=subject)
    faults = [*name_faults(name_of(state), email_of(state)), *subject_faults(named)]
    if faults:
        raise InvalidParams(faults=faults)
    if not state.user_name.strip():
        raise refused("invalidValue", "userName is required")
