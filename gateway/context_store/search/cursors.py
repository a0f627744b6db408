"""Page cursors: the position of a page's last record, signed, and valid only for the same search."""

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from uuid import UUID

import msgspec

from gateway.context_store.search.filters import Query
from gateway.errors import FieldError, InvalidQuery

_MAC_BYTES = 16

SortValue = str | float | bool | None


@dataclass(frozen=True, slots=True)
class Position:
    """The sort values and the id of a page's last record; the next page starts after it, even if it has changed."""

    values: tuple[SortValue, ...]
    id: str


@dataclass(frozen=True, slots=True)
class Cursors:
    """Signs and reads the cursors of one search."""

    key: bytes
    scope: bytes

    @classmethod
    def of(cls, key: bytes, connector_id: UUID, entity: str, query: Query) -> "Cursors":
        """The cursors of this filter and sort of the entity; limit and fields may change between pages."""
        query_json = msgspec.json.encode([connector_id, entity, query.filter, query.sort], order="deterministic")
        return cls(key, hashlib.sha256(query_json).digest())

    def issued(self, position: Position) -> str:
        """The cursor of a position."""
        payload = msgspec.json.encode([*position.values, position.id])
        return urlsafe_b64encode(self._mac(payload) + payload).rstrip(b"=").decode()

    def read(self, cursor: str, at: str = "") -> Position:
        """The position; raises InvalidQuery for a cursor that was changed or belongs to another search.

        `at` is the JSON pointer of the params.
        """
        try:
            token = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        except ValueError:
            token = b""
        mac, payload = token[:_MAC_BYTES], token[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(payload)):
            message = (
                "the cursor belongs to another search; repeat filter and sort of the page it came from, or leave it out"
            )
            raise InvalidQuery(message, faults=[FieldError(f"{at}/cursor", "cursor", "foreign", message)])
        *values, id_ = msgspec.json.decode(payload)
        return Position(tuple(values), id_)

    def _mac(self, payload: bytes) -> bytes:
        return hmac.digest(self.key, self.scope + payload, "sha256")[:_MAC_BYTES]
