"""Chooses what a full cache drops, so that one organization's entries do not drive out those of the others. Pure."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class _Held(Generic[K]):
    """The entries of one holder with their sizes, the least recently used first."""

    sizes: OrderedDict[K, int] = field(default_factory=OrderedDict)
    size: int = 0


class LeastUsed(Generic[K]):
    """The keys of a cache, in the order of their use.

    A cache beyond `most` drops the least recently used entry of the holder that adds one, if this holder has more than
    an equal part of the cache, and otherwise of all.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        #: whether a cache is half full: before, it drops nothing soon, and the order of use is not needed
        self.is_filling = False
        self._holder_of: OrderedDict[K, Hashable] = OrderedDict()
        self._held: dict[Hashable, _Held[K]] = {}

    def add(self, key: K, holder: Hashable, size: int = 1) -> list[K]:
        """Add a new key of a holder; returns the keys to drop, which this forgets."""
        held = self._held.setdefault(holder, _Held())
        held.sizes[key] = size
        held.size += size
        self._size += size
        self._holder_of[key] = holder
        self.is_filling = 2 * self._size >= self._most
        dropped: list[K] = []
        while self._size > self._most:
            is_large = held.size * len(self._held) >= self._size
            dropped.append(next(iter(held.sizes if is_large else self._holder_of)))
            self.discard(dropped[-1])
        return dropped

    def use(self, key: K) -> None:
        """Note that the entry of a known key was used."""
        self._holder_of.move_to_end(key)
        self._held[self._holder_of[key]].sizes.move_to_end(key)

    def discard(self, key: K) -> None:
        """Forget a key, if it is known."""
        if key not in self._holder_of:
            return
        holder = self._holder_of.pop(key)
        held = self._held[holder]
        size = held.sizes.pop(key)
        held.size -= size
        self._size -= size
        if not held.sizes:
            del self._held[holder]

    def clear(self) -> None:
        """Forget all keys."""
        self._holder_of.clear()
        self._held.clear()
        self._size = 0
