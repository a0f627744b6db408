"""Batches as callers send them."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

import msgspec

from gateway.errors import InvalidParams

#: maximum operations of a batch that is sent as lines
MAX_LINES = 100_000
#: maximum operations of a batch that is sent as one JSON document
MAX_OPERATIONS = 10_000
#: maximum operations of a batch with `steps`
MAX_STEPS = 20
#: default number of operations that a batch runs concurrently
CONCURRENCY = 20
#: maximum number of operations that a batch runs concurrently
MAX_CONCURRENCY = 100

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class BatchOperation(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One operation as a caller sends it."""

    entity: Annotated[_Name, msgspec.Meta(description="the entity, such as tickets")]
    action: Annotated[_Name, msgspec.Meta(description="the action, such as update")]
    id: Annotated[_Id | None, msgspec.Meta(description="the caller's id of the operation, repeated in its result")] = (
        None
    )
    params: Annotated[dict[str, Any] | None, msgspec.Meta(description="the operation's params")] = None

    @classmethod
    def of(cls, document: object) -> "BatchOperation":
        """The operation in a decoded JSON value; raises InvalidParams."""
        try:
            return msgspec.convert(document, cls)
        except msgspec.ValidationError as error:
            raise InvalidParams(f"{error}; an operation has entity, action, and may have params and id") from error


@dataclass(frozen=True, slots=True)
class ReceivedOperation:
    """One operation as it was received."""

    #: its place for error messages: `line 4`, or `operations[3]`
    where: str
    #: the decoded JSON value, or an InvalidParams if the text is not JSON
    value: object


async def received_operations(operations: Iterable[object], name: str) -> AsyncIterator[ReceivedOperation]:
    """Operations that are in memory; error messages call them `name[0]`, `name[1]`, …"""
    for index, operation in enumerate(operations):
        yield ReceivedOperation(f"{name}[{index}]", operation)


class BatchOptions(msgspec.Struct, frozen=True):
    """How a batch is run."""

    concurrency: int = CONCURRENCY
    #: whether no operation is sent after the first one that does not succeed
    stop_on_error: bool = False
    #: whether the operations run in order and may refer to the results of earlier ones
    steps: bool = False


class BatchCall(msgspec.Struct, frozen=True, kw_only=True):
    """A caller's request for a batch; the operations are received separately."""

    connector_id: UUID
    options: BatchOptions
    #: maximum number of operations
    limit: int
    idempotency_key: str | None = None
    request_id: str | None = None
    token_hash: bytes | None = None
    #: the webhook that receives the event of the job's end
    callback: UUID | None = None
