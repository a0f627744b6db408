"""Operations of a batch as callers send them and as they are stored, and a result for each."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from gateway.errors import InvalidParams
from gateway.jobs import results

#: operations of one batch, sent as lines and as one JSON document, and those that may refer to each other
MAX_LINES, MAX_OPERATIONS, MAX_STEPS = 100_000, 10_000, 20
#: operations that a batch runs at a time, unless the caller asks for another number; and the most
CONCURRENCY, MAX_CONCURRENCY = 20, 100

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class BatchOperation(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One operation as a caller sends it."""

    entity: Annotated[_Name, msgspec.Meta(description="what the operation is of, such as tickets")]
    action: Annotated[_Name, msgspec.Meta(description="what to do, such as update")]
    id: Annotated[_Id | None, msgspec.Meta(description="the caller's own name for it, which its result carries")] = None
    params: Annotated[dict[str, Any] | None, msgspec.Meta(description="what the operation takes")] = None

    @classmethod
    def of(cls, document: object) -> "BatchOperation":
        """The operation in a decoded JSON value; raises InvalidParams."""
        try:
            return msgspec.convert(document, cls)
        except msgspec.ValidationError as error:
            raise InvalidParams(f"{error}; an operation has entity, action, and may have params and id") from error


class StoredOperation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operation as it is stored: its params are validated, except where they refer to earlier steps."""

    entity: str
    action: str
    id: str | None = None
    params: Mapping[str, Any] = msgspec.field(default_factory=dict)
    #: records asked for of a list that the application does not page
    limit: int | None = None


class BatchOptions(msgspec.Struct, frozen=True):
    """How a batch is run."""

    concurrency: int = CONCURRENCY
    #: whether the first operation that does not succeed keeps the others from being sent
    stop_on_error: bool = False
    #: whether the operations run in order and may refer to the results of earlier ones
    steps: bool = False


class BatchJob(BatchOptions, frozen=True):
    """The params of a batch's job."""

    total: int = 0


class ItemStatus(StrEnum):
    """How one operation of a batch ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    #: it was sent and its response was lost; the gateway does not send it again
    UNKNOWN = "unknown"
    #: it was not sent
    SKIPPED = "skipped"


class ItemResult(msgspec.Struct, frozen=True):
    """One operation's line of the result."""

    index: int
    id: str | UnsetType
    status: ItemStatus
    result: msgspec.Raw | UnsetType = UNSET
    error: dict[str, Any] | UnsetType = UNSET

    def line(self) -> str:
        """As one line of JSON."""
        return results.line_of(msgspec.Raw(msgspec.json.encode(self)))
