"""Whose requests are admitted in an overload: those of organizations that had less than the average."""

from collections.abc import Hashable

#: tokens whose organization is known; beyond it all are forgotten, and learned again
_MAX_KNOWN = 10_000
#: organizations whose requests are counted
_MAX_COUNTED = 10_000


class OrganizationTurns:
    """Counts the admitted requests of organizations over about the last two seconds.

    Requests are counted before their token is verified: a token that was verified before belongs to its organization,
    and all other requests are counted together.
    """

    def __init__(self) -> None:
        #: hash of the `Authorization` header → organization; no token is kept
        self._known: dict[int, Hashable] = {}
        self._admitted: dict[Hashable, float] = {}
        self._total = 0.0
        #: requests in progress
        self._in_progress: dict[Hashable, int] = {}

    def learn(self, authorization: str | None, organization_id: Hashable) -> None:
        """The token in the header was verified, and belongs to the organization."""
        if authorization is None or (key := hash(authorization)) in self._known:
            return
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[key] = organization_id

    def begin(self, authorization: str | None) -> Hashable:
        """Count an admitted request; returns whose it is, for `end`."""
        holder = self._holder(authorization)
        if holder in self._admitted or len(self._admitted) < _MAX_COUNTED:
            self._admitted[holder] = self._admitted.get(holder, 0.0) + 1
            self._total += 1
        self._in_progress[holder] = self._in_progress.get(holder, 0) + 1
        return holder

    def end(self, holder: Hashable) -> None:
        """A request that was begun has ended."""
        left = self._in_progress.pop(holder) - 1
        if left:
            self._in_progress[holder] = left

    def is_behind(self, authorization: str | None) -> bool:
        """Whether the organization has no request in progress, or had less than the average of those that send."""
        holder = self._holder(authorization)
        if holder not in self._in_progress:
            return True
        senders = len(self._admitted) + (holder not in self._admitted)
        return self._admitted.get(holder, 0.0) * senders < self._total

    def forget_half(self) -> None:
        """Let a second pass: what was admitted before counts half."""
        self._admitted = {holder: count / 2 for holder, count in self._admitted.items() if count > 1}
        self._total = sum(self._admitted.values())

    def _holder(self, authorization: str | None) -> Hashable:
        return None if authorization is None else self._known.get(hash(authorization))
