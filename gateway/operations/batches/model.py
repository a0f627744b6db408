"""The stored operations of a batch, and their results."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from gateway import errors
from gateway.contract.batches import BatchOptions
from gateway.errors import GatewayError
from gateway.jobs import results
from gateway.upstream.responses import OperationResult


class StoredOperation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operation as it is stored: its params are validated, except where they refer to earlier steps."""

    entity: str
    action: str
    id: str | None = None
    params: Mapping[str, Any] = msgspec.field(default_factory=dict)
    #: maximum records of a list that the application does not page
    limit: int | None = None


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


class ItemResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one operation, a line of the batch's result."""

    index: int
    id: str | UnsetType
    status: ItemStatus
    result: msgspec.Raw | UnsetType = UNSET
    #: paths of members that policies redact in the result
    redacted: Sequence[str] | UnsetType = UNSET
    #: what is wrong with the result of an operation that was carried out, or what could not be checked
    warning: str | UnsetType = UNSET
    error: dict[str, Any] | UnsetType = UNSET

    @classmethod
    def of(
        cls,
        index: int,
        operation: StoredOperation,
        status: ItemStatus,
        error: GatewayError | None = None,
        *,
        answer: OperationResult | None = None,
    ) -> "ItemResult":
        """The result of an operation by its answer, or by its error."""
        return cls(
            index=index,
            id=UNSET if operation.id is None else operation.id,
            status=status,
            result=UNSET if answer is None else answer.result,
            redacted=UNSET if answer is None or not answer.redacted else answer.redacted,
            warning=UNSET if answer is None or answer.warning is None else answer.warning,
            error=UNSET if error is None else errors.document(error),
        )

    def line(self) -> str:
        """The result as one line of JSON."""
        return results.line_of(msgspec.Raw(msgspec.json.encode(self)))
