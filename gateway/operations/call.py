"""A caller's request, and its result: an answer or a job."""

import hashlib
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec

from gateway.contract.exports import FileFormat
from gateway.contract.policies import Surface
from gateway.jobs.model import JobSummary
from gateway.operations.response_cache import Freshness
from gateway.upstream.field_selection import FieldSelection
from gateway.upstream.responses import OperationResult


class OperationCall(msgspec.Struct, frozen=True, kw_only=True):
    """A caller's request."""

    connector_id: UUID
    entity: str
    action: str
    #: where it comes from, for policies
    surface: Surface = Surface.HTTP
    params: Mapping[str, Any] = msgspec.field(default_factory=dict)
    selection: FieldSelection = msgspec.field(default_factory=FieldSelection)
    intent: str | None = None
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    #: the format of an export's file
    file: FileFormat | None = None
    idempotency_key: str | None = None
    #: `Prefer: respond-async`
    respond_async: bool = False
    #: `Prefer: wait=N`, seconds
    wait: int | None = None
    request_id: str | None = None
    #: the URL by which the caller reaches the gateway
    base_url: str = ""
    #: the maximum age of a cached answer to a read; None for no cached answer
    freshness: Freshness | None = None
    #: SHA-256 of the token of a caller that follows redirects to the result, possibly after the token expires
    token_hash: bytes | None = None
    #: the webhook that receives the job's final event
    callback: UUID | None = None

    def fingerprint(self) -> bytes:
        """SHA-256 of the members that distinguish requests with the same idempotency key; policies may change."""
        selection = msgspec.structs.replace(self.selection, redact=())
        identity: list[Any] = [self.entity, self.action, self.params, selection.as_document()]
        identity += [member for member in (self.file, self.callback) if member is not None]
        return hashlib.sha256(msgspec.json.encode(identity, order="deterministic")).digest()


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that is complete."""

    answer: OperationResult
    took_ms: int
    is_replayed: bool = False
    #: whether it is the result of a job, whose run took its records from budgets
    is_of_job: bool = False
    #: if the caller accepts a cached answer: whether it is one (RFC 9211), and its age in seconds
    cache: str | None = None
    age: float = 0.0
    #: the headers `Deprecation` and `Sunset`, if the call relies on a part of the application that will end
    sunset_headers: Mapping[str, str] = msgspec.field(default_factory=dict)


class Accepted(msgspec.Struct, frozen=True):
    """A job that continues after the call."""

    job: JobSummary
    is_replayed: bool = False
    sunset_headers: Mapping[str, str] = msgspec.field(default_factory=dict)
