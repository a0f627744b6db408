"""Holds the keys of key services, each for a stated time after it was last unwrapped, or until it is withdrawn."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from gateway.errors import Unavailable
from gateway.foundation.aio.clock import steady
from gateway.foundation.aio.loops import every, running
from gateway.foundation.telemetry.metrics import KEYS_HELD_SECONDS
from gateway.foundation.vault.key_services.opening import answers, unwrapped_at_start
from gateway.foundation.vault.key_services.service import KeyServiceError, KeyWithdrawn
from gateway.foundation.vault.vault import KeyList, Vault, WrittenKeys, wrapped_keys

log = logging.getLogger(__name__)

#: the part of the time after which a key is unwrapped again
_RENEWAL = 1 / 8
#: maximum seconds between looks at the time, and between attempts while a service is away
_INTERVAL = 30.0


@dataclass(frozen=True, slots=True)
class Holding:
    """When a key was last unwrapped, and whether it is held."""

    unwrapped_at: float
    is_held: bool = True

    def is_due(self, now: float, seconds: float) -> bool:
        """Whether its service is asked again."""
        return not self.is_held or now >= self.unwrapped_at + seconds * _RENEWAL

    def left(self, now: float, seconds: float) -> float:
        """Seconds for which the key is still held."""
        return max(self.unwrapped_at + seconds - now, 0.0) if self.is_held else 0.0


def holding_after(holding: Holding, answer: bytes | KeyServiceError, now: float, seconds: float) -> Holding:
    """The holding after an answer of the key's service.

    A service that unwraps the key confirms it; one that says that its key is withdrawn ends it. One that is away, or
    refuses for another reason, such as its permissions, ends it once the time is over.
    """
    if isinstance(answer, bytes):
        return Holding(now)
    is_over = isinstance(answer, KeyWithdrawn) or holding.left(now, seconds) <= 0
    return replace(holding, is_held=holding.is_held and not is_over)


@asynccontextmanager
async def open_keys(written: WrittenKeys, seconds: float) -> AsyncIterator[tuple[KeyList, Vault]]:
    """The keys and their vault, which holds each of a key service for `seconds` after it was last unwrapped.

    Waits while a key service is away; raises KeyListError if one refuses.
    """
    keys = await unwrapped_at_start(written)
    vault, wrapped = Vault(keys), wrapped_keys(written)
    if not wrapped:
        yield keys, vault
        return

    async def ask(key_ids: Collection[str]) -> Mapping[str, bytes | KeyServiceError]:
        return await answers({key_id: wrapped[key_id] for key_id in key_ids})

    held = HeldKeys(vault, wrapped, seconds, ask)
    async with running(every(min(_INTERVAL, seconds * _RENEWAL), held.look, name="encryption keys")):
        yield keys, vault


class HeldKeys:
    """The keys of key services in a vault; `ask` returns the answer for each of the given ids."""

    def __init__(
        self,
        vault: Vault,
        key_ids: Collection[str],
        seconds: float,
        ask: Callable[[Collection[str]], Awaitable[Mapping[str, bytes | KeyServiceError]]],
        now: Callable[[], float] = steady,
    ) -> None:
        self._vault, self._seconds, self._ask, self._now = vault, seconds, ask, now
        self._holdings = {key_id: Holding(now()) for key_id in key_ids}
        KEYS_HELD_SECONDS.set(seconds)

    async def look(self) -> None:
        """Ask for the keys that are due, and hold or forget each of them. Raises Unavailable for those that failed."""
        asked_at = self._now()
        due = [key_id for key_id, each in self._holdings.items() if each.is_due(asked_at, self._seconds)]
        found = await self._ask(due) if due else {}
        now = self._now()
        for key_id, answer in found.items():
            self._settle(key_id, answer, holding_after(self._holdings[key_id], answer, now, self._seconds))
        KEYS_HELD_SECONDS.set(min(each.left(now, self._seconds) for each in self._holdings.values()))
        failures = [
            f"{answer}; it is held for another {self._holdings[key_id].left(now, self._seconds):.0f} s"
            for key_id, answer in found.items()
            if isinstance(answer, KeyServiceError)
        ]
        if failures:
            raise Unavailable("; ".join(failures))

    def _settle(self, key_id: str, answer: bytes | KeyServiceError, holding: Holding) -> None:
        was_held, self._holdings[key_id] = self._holdings[key_id].is_held, holding
        if isinstance(answer, bytes):
            self._vault.hold({key_id: answer})
            if not was_held:
                log.info("an encryption key is held again", extra={"key_id": key_id})
        elif was_held and not holding.is_held:
            log.error("an encryption key is forgotten until its key service unwraps it: %s", answer)
            self._vault.forget([key_id])
