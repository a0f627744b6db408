"""Looks up the names of applications' hosts, in threads that organizations share.

An event loop has few threads for all look-ups, and a name server that does not answer keeps one for many seconds.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from aiohttp.abc import AbstractResolver, ResolveResult

from gateway.foundation.aio.turns import Turns, computing_for

#: look-ups at a time, and those of one organization
_LOOKUPS, _OF_ONE = 32, 8
_NUMERIC = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV

_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()


class NameLookups(AbstractResolver):
    """A resolver by the system's `getaddrinfo`."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a host; raises OSError if there are none, and UnicodeError for what is no name."""
        loop, organization = asyncio.get_running_loop(), computing_for()
        turns = _TURNS.setdefault(loop, Turns(_LOOKUPS, _OF_ONE))
        await turns.acquire(organization)
        found: asyncio.Future[list[ResolveResult]] = loop.create_future()

        def release(_: object) -> None:
            turns.release(organization)
            if not found.cancelled():
                found.exception()  # its caller may have left

        found.add_done_callback(release)

        def end(addresses: Sequence[ResolveResult], error: BaseException | None) -> None:
            if error is None:
                found.set_result(list(addresses))
            else:
                found.set_exception(error)

        def look_up() -> None:
            addresses: Sequence[ResolveResult] = ()
            failed: BaseException | None = None
            try:
                addresses = _addresses(host, port, family)
            except BaseException as error:  # it is the caller's
                failed = error
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(end, addresses, failed)

        # A thread of its own: those of an executor would hold up the end of the process.
        try:
            threading.Thread(target=look_up, name="look up a name", daemon=True).start()
        except RuntimeError as error:
            found.cancel()
            raise OSError("no thread is left to look up a name") from error
        return await asyncio.shield(found)  # its place is free when the thread has ended

    async def close(self) -> None:
        """Do nothing: what was begun ends by itself."""


def _addresses(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    infos = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return [
        ResolveResult(
            hostname=host,
            host=socket.getnameinfo(address, _NUMERIC)[0],  # with the zone of a link-local address
            port=port,
            family=family,
            proto=protocol,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for family, _, protocol, _, address in infos
    ]
