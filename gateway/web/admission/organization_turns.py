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

    def learn(self, authorization: str | None, organization_id: Hashable) -> None:
        """The token in the header was verified, and belongs to the organization."""
        if authorization is None or (key := hash(authorization)) in self._known:
            return
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[key] = organization_id

    def add(self, authorization: str | None) -> None:
        """Count an admitted request."""
        holder = self._holder(authorization)
        if holder in self._admitted or len(self._admitted) < _MAX_COUNTED:
            self._admitted[holder] = self._admitted.get(holder, 0.0) + 1
            self._total += 1

    def is_behind(self, authorization: str | None) -> bool:
        """Whether the organization of the request has had less than the average of the organizations that send."""
        holder = self._holder(authorization)
        senders = len(self._admitted) + (holder not in self._admitted)
        return self._admitted.get(holder, 0.0) * senders < self._total

    def forget_half(self) -> None:
        """Let a second pass: what was admitted before counts half."""
        self._admitted = {holder: count / 2 for holder, count in self._admitted.items() if count > 1}
        self._total = sum(self._admitted.values())

    def _holder(self, authorization: str | None) -> Hashable:
        return None if authorization is None else self._known.get(hash(authorization))
