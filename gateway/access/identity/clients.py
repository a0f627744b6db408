"""The use cases of an organization's own clients: programs that its administrators create, and their permissions."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Client, Scope, id_of
from gateway.access.identity.redirect_urls import MAX_URLS, redirect_errors
from gateway.access.identity.store import IdentityStore
from gateway.access.identity.tokens import hashed, new_secret
from gateway.errors import (
    Conflict,
    FieldError,
    GatewayError,
    IdempotencyMismatch,
    InvalidParams,
    NotFound,
    RateLimited,
)

log = logging.getLogger(__name__)

#: maximum characters of the name of a client or a person, and enabled programs of an organization
MAX_NAME, _MAX_CLIENTS = 200, 1000


class Clients:
    """Lists, creates and changes clients for the administrators of their organization.

    For an administrator that is limited to workspaces, only clients with the same or narrower limits exist.
    """

    def __init__(self, audit: Audit, store: IdentityStore, *, is_embedded: bool) -> None:
        self._audit = audit
        self._store = store
        self._is_embedded = is_embedded

    async def all(self, caller: Caller) -> Sequence[Client]:
        """Programs that may act for the caller's organization, and its first thousand people, oldest first."""
        return [client for client in await self._store.clients_of(caller.organization_id) if caller.covers(client)]

    async def programs(self, caller: Caller) -> Sequence[Client]:
        """Enabled programs that may act for the caller's organization, oldest first."""
        return [client for client in await self._store.programs_of(caller.organization_id) if caller.covers(client)]

    async def names(self, caller: Caller, ids: Iterable[str | None]) -> Mapping[str, str]:
        """The names of these clients and people, by their ids; those of other organizations are left out."""
        wanted = {identifier for each in ids if (identifier := id_of(each)) is not None}
        found = await self._store.names(caller.organization_id, wanted) if wanted else {}
        return {str(client_id): name for client_id, name in found.items()}

    async def create(
        self, caller: Caller, name: str, scopes: Sequence[Scope], *, idempotency_key: UUID | None = None
    ) -> tuple[UUID, str | None]:
        """Create a client of the organization with the workspaces of the caller; returns its id and secret.

        With a key that the caller has used, the secret is None. Raises InvalidParams, Conflict, and IdempotencyMismatch
        if the client that the key created differs.
        """
        client_id = caller.new_id(idempotency_key)
        with self._audit.record("client.create", caller, changed=("name", "scopes")) as entry:
            require_name(name)
            if not scopes:
                raise InvalidParams("give the client at least one scope")
            organization_id, workspaces = caller.organization_id, caller.client.workspaces
            if len(await self._store.programs_of(organization_id)) >= _MAX_CLIENTS:
                raise Conflict(f"the organization has {_MAX_CLIENTS} clients; disable some with gateway admin client")
            secret, entry.target = new_secret(), str(client_id)
            try:
                await self._store.create_client(
                    name,
                    [organization_id],
                    hashed(secret),
                    scopes,
                    workspaces=None if workspaces is None else sorted(workspaces),
                    client_id=client_id,
                )
            except Conflict:
                await self._require_same(caller, client_id, name, scopes)
                return client_id, None
        return client_id, secret

    async def _require_same(self, caller: Caller, client_id: UUID, name: str, scopes: Sequence[Scope]) -> None:
        """Raise IdempotencyMismatch unless the client has this name and these scopes."""
        client = await self.own(caller, client_id)
        if (client.name, client.scopes) != (name, frozenset(scopes)):
            raise IdempotencyMismatch("the idempotency key was used for another client; use a new one")

    async def rotate_secret(self, caller: Caller, client_id: UUID) -> str:
        """Add a secret and return it; the previous one stays valid. Raises NotFound."""
        with self._audit.record("client.rotate_secret", caller, target=str(client_id), changed=["secret"]):
            secret = new_secret()
            await self._store.rotate_secret((await self.own(caller, client_id)).id, hashed(secret))
        return secret

    async def disable(self, caller: Caller, client_id: UUID) -> None:
        """Disable a client permanently, and end its tokens and grants at once; raises NotFound, and Conflict for the
        caller itself.
        """
        with self._audit.record("client.disable", caller, target=str(client_id), changed=["disabled_at"]):
            client = await self.own(caller, client_id)
            if client.id == caller.client_id:
                raise Conflict("a client cannot disable itself; use another client with the scope admin")
            await self._store.disable_client(client.id)

    async def change_redirect_urls(self, caller: Caller, client_id: UUID, urls: Sequence[str]) -> Client:
        """Replace a client's redirect URLs; raises NotFound and InvalidParams."""
        with self._audit.record("client.update", caller, target=str(client_id), changed=["redirect_urls"]):
            await self.own(caller, client_id)
            if len(urls) > MAX_URLS:
                message = f"redirect_urls has more than {MAX_URLS} URLs"
                raise InvalidParams(faults=[FieldError("/redirect_urls", "redirect_urls", "too_many", message)])
            if faults := redirect_errors(urls, is_embedded=self._is_embedded):
                raise InvalidParams(faults=faults)
            await self._store.change_redirect_urls(client_id, urls)
            return await self.own(caller, client_id)

    async def change_delegate_for(self, caller: Caller, client_id: UUID, groups: Sequence[str]) -> Client:
        """Replace the groups for whose members a client may open sessions; raises NotFound, InvalidParams for unknown
        groups, and InsufficientScope for a caller that is limited to workspaces.
        """
        with self._audit.record("client.update", caller, target=str(client_id), changed=["delegate_for"]):
            caller.require_whole_organization()
            await self.own(caller, client_id)
            unknown = await self._store.change_delegate_for(
                caller.organization_id, client_id, list(dict.fromkeys(groups))
            )
            if unknown:
                messages = [f"delegate_for: there is no group {name!r}" for name in unknown]
                raise InvalidParams(
                    faults=[FieldError("/delegate_for", "delegate_for", "unknown", each) for each in messages]
                )
            return await self.own(caller, client_id)

    async def sign_in_failed(self, what: str, client_id: str, error: GatewayError) -> None:
        """Record that a sign-in as this client was refused, in the audit log of each of its organizations.

        A refusal because of too many sign-ins (RateLimited) is not recorded, so that strangers cannot fill the log.
        """
        log.warning("a sign-in failed", extra={"sign_in": what, "client_id": client_id[:MAX_NAME], "code": error.code})
        id_ = None if isinstance(error, RateLimited) else id_of(client_id)
        stored = None if id_ is None else await self._store.client(id_)
        if stored is None:
            return
        for organization_id in stored.client.organization_ids:
            with self._audit.record(what, Caller(stored.client, organization_id)) as entry:
                entry.outcome = error.code

    async def own(self, caller: Caller, client_id: UUID) -> Client:
        """A client of this organization alone, because an organization must not change a client of another; raises
        NotFound, also for a client with workspaces that the caller may not see.
        """
        stored = await self._store.client(client_id)
        if (
            stored is None
            or stored.client.organization_ids != {caller.organization_id}
            or not caller.covers(stored.client)
        ):
            raise NotFound("the client does not exist, or belongs to other organizations too")
        return stored.client


def require_name(name: str) -> None:
    """Raise InvalidParams unless the name has 1 to 200 printable characters."""
    if not 0 < len(name) <= MAX_NAME or not name.isprintable():
        message = f"name must be 1 to {MAX_NAME} printable characters"
        raise InvalidParams(message, faults=[FieldError("/name", "name", "invalid", message)])
