"""Whether the caller of a request that lasts may still do what it could at the beginning."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from uuid import UUID

from gateway.access.identity.model import Client
from gateway.access.identity.store import IdentityStore, both
from gateway.errors import Unauthorized
from gateway.foundation.aio.retries import retry_until_available


class Standing:
    """Ends streams, waits and transfers whose caller may do less than it could when they began.

    A token that expires meanwhile is accepted until its row is deleted.
    """

    def __init__(self, identity: IdentityStore) -> None:
        self._identity = identity
        #: by the id of a client
        self._watches: dict[UUID, set[_Watch]] = {}

    @property
    def held_requests(self) -> int:
        """The number of requests that are held now."""
        return len(self._all())

    def on_notify(self, subject: str) -> None:
        """Something about the client with this id may have changed; about any client for `*`."""
        if subject == "*":
            self.wake_all()
        else:
            _wake(self._watches.get(UUID(subject), ()))

    def wake_all(self) -> None:
        """Something may have changed about any client."""
        _wake(self._all())

    def _all(self) -> "set[_Watch]":
        return set[_Watch]().union(*self._watches.values())

    async def require(self, client: Client) -> None:
        """Raise Unauthorized if the token was revoked meanwhile, or allows less than it did."""
        now = await self._current(client)
        if now is None:
            revoked = Unauthorized("the token was revoked; get a new one")
            revoked.reason = "the token or its grant was revoked"
            raise revoked
        if _is_less(now, client):
            raise Unauthorized("the token allows less than before; send the request again")

    @asynccontextmanager
    async def held(self, client: Client, *, is_checked: bool = False) -> AsyncIterator[None]:
        """Raise the errors of `require` in the block when they become true, by canceling what the block waits for.

        `is_checked` also checks at the beginning, for blocks that nothing else ends.
        """
        watch = _Watch(partial(self.require, client))
        ids = {client.id} if client.session is None else {client.id, client.session.client_id}
        for each in ids:
            self._watches.setdefault(each, set()).add(watch)
        try:
            async with watch.limit:
                if is_checked:
                    watch.wake()
                yield
        except TimeoutError:
            if watch.refusal is not None:
                raise watch.refusal from None
            raise
        finally:
            watch.end()
            for each in ids:
                self._watches[each].discard(watch)
                if not self._watches[each]:
                    del self._watches[each]

    async def _current(self, client: Client) -> Client | None:
        """The client as its token proves it now, or the session or grant of its link; None if nothing proves it."""
        if client.token_hash is not None:
            return await self._identity.lasting(client.token_hash)
        if client.origin_id is not None:
            return await self._identity.of_origin(client.origin_id)
        return await self._identity.enabled_client(client.id)


class _Watch:
    """Checks a caller again after each change, and ends the block when the check fails."""

    def __init__(self, require: Callable[[], Awaitable[None]]) -> None:
        self._require = require
        self._checking: asyncio.Task[None] | None = None
        self._is_changed = False
        self.limit = asyncio.timeout(None)
        self.refusal: Unauthorized | None = None

    def wake(self) -> None:
        self._is_changed = True
        if self._checking is None and self.refusal is None:
            self._checking = asyncio.create_task(self._check())

    async def _check(self) -> None:
        try:
            while self._is_changed:
                self._is_changed = False
                await retry_until_available(self._require)
        except Unauthorized as error:
            self.refusal = error
            self.limit.reschedule(asyncio.get_running_loop().time())
        finally:
            self._checking = None

    def end(self) -> None:
        if self._checking is not None:
            self._checking.cancel()


def _wake(watches: Collection[_Watch]) -> None:
    for watch in [*watches]:
        watch.wake()


def _is_less(now: Client, before: Client) -> bool:
    """Whether the client may do less than before."""
    return not (
        before.scopes <= now.scopes
        and before.organization_ids <= now.organization_ids
        and both(before.workspaces, now.workspaces) == before.workspaces
    )
