"""Decodes rows of several organizations, so that a row that cannot be decoded costs only itself.

A row may have been altered, moved here from another database, sealed with a key that is not in this process's list, or
written by a version with another format.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from gateway.errors import InternalError, Unavailable
from gateway.foundation.aio.turns import mapped

T = TypeVar("T")

log = logging.getLogger(__name__)


class UnreadableRow(NamedTuple):
    """A row that cannot be decoded."""

    row: Any
    #: why; it quotes nothing of the row
    error: InternalError


class Decoded(NamedTuple, Generic[T]):
    """The values of the rows that were decoded, in order, and the other rows."""

    values: list[T]
    unreadable: list[UnreadableRow]


def readable(row: Any, decode: Callable[[Any], T], what: str, key: str = "id") -> T | InternalError:
    """The decoded row, or the error of a row that cannot be decoded, which is logged with its column `key`.

    `what` names the row, such as `a schedule`. Raises Unavailable while what decodes it is away, such as a key service.
    """
    try:
        return decode(row)
    except Unavailable:
        raise
    except Exception as error:
        reason = error.detail if isinstance(error, InternalError) else type(error).__name__
        is_expected = isinstance(error, InternalError)
        message = "%s cannot be read, and the others are: %s"
        log.error(message, what, reason, exc_info=None if is_expected else error, extra={"row": str(row[key])})
        return InternalError(f"{what} cannot be read: {reason}")


def require_readable(found: T | InternalError) -> T:
    """The value that `readable` returned; raises its error."""
    if isinstance(found, InternalError):
        raise found
    return found


async def decoded(
    rows: Sequence[Any],
    decode: Callable[[Any], T],
    what: str,
    key: str = "id",
    is_large: Callable[[Any], bool] = lambda row: False,
) -> Decoded[T]:
    """All rows by `readable`, which may raise Unavailable, without holding the event loop for long."""
    found: Decoded[T] = Decoded([], [])
    for row, value in zip(
        rows, await mapped(lambda row: readable(row, decode, what, key), rows, is_large), strict=True
    ):
        if isinstance(value, InternalError):
            found.unreadable.append(UnreadableRow(row, value))
        else:
            found.values.append(value)
    return found
