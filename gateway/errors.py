"""All errors, with the codes that callers match on.

GatewayError
├── RequestError                 the caller can fix it
│   ├── MalformedRequest         OrganizationRequired, ConflictingRange
│   ├── Unauthorized
│   ├── Forbidden                OrganizationForbidden, InsufficientScope, DeniedByPolicy,
│   │                            ApproverIsRequester, PersonalConnector
│   ├── NotFound                 UpstreamNotFound, ResultExpired, CursorExpired, UploadExpired
│   ├── Conflict                 IdempotencyInFlight, ConnectorNotReady, JobNotCancelable, JobCanceled,
│   │                            ApprovalDenied, ApprovalExpired, ApprovalChanged, OutcomeUnknown,
│   │                            UploadOffsetMismatch
│   ├── BodyTooLarge, HeadersTooLarge, UnsupportedEncoding
│   ├── RangeNotSatisfiable
│   ├── InvalidParams            UnknownEntity, UnknownAction, UnknownConnectorType, InvalidCredentials,
│   │                            InvalidQuery, InvalidPolicy, IdempotencyMismatch, UpstreamRejected,
│   │                            NotResumable
│   ├── PreconditionFailed
│   ├── ReauthorizationRequired
│   └── RateLimited              BudgetSpent, UpstreamRateLimited, UpstreamQueueFull
├── UpstreamError                the application failed
│   ├── UpstreamBusy             it did nothing and asks to try again
│   ├── UpstreamInvalidResponse, UpstreamTooLarge, UpstreamTruncated
│   └── UpstreamTimeout
├── NotCached                    no cached answer is fresh enough, and the caller accepts no other
├── Unavailable                  PostgreSQL or another dependency does not respond
├── WorkerCrashed                the job lost its worker too often
└── InternalError                a bug of the gateway; the response has no details

Only `gateway.web.errors` maps them to HTTP statuses and problem documents (RFC 9457).
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault of a request: a JSON pointer (RFC 6901), the field's name, a code, and a complete sentence."""

    pointer: str
    field: str
    code: str
    message: str


#: maximum number of faults of one error
MAX_FAULTS = 50
#: number of faults whose messages `detail` has
_IN_DETAIL = 3


def _summary(faults: tuple[FieldError, ...]) -> str:
    """The messages of the first few faults, because many readers see only `detail`."""
    rest = len(faults) - _IN_DETAIL
    more = [f"and {'at least ' if len(faults) == MAX_FAULTS else ''}{rest} more"] if rest > 0 else []
    return "; ".join([*(fault.message for fault in faults[:_IN_DETAIL]), *more])


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamFault:
    """The application's own description of its failure, without secrets."""

    status: int | None = None
    code: str | None = None
    message: str | None = None
    request_id: str | None = None
    #: the members of the request that the application names, separated by commas
    field: str | None = None


class GatewayError(Exception):
    """Base of all errors; `code` is the word that clients match on, and `detail` a sentence that says how to fix it."""

    code: ClassVar[str] = "internal_error"
    title: ClassVar[str] = "Internal error"
    #: whether the same request may be sent again
    retryable: bool = False
    #: whether it is the stored outcome of an earlier request with the same idempotency key
    is_replayed: bool = False

    def __init__(
        self,
        detail: str | None = None,
        *,
        faults: Iterable[FieldError] = (),
        upstream: UpstreamFault | None = None,
        retry_after: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        #: the first MAX_FAULTS; a generator is not read further
        self.faults = tuple(islice(faults, MAX_FAULTS))
        self.detail = detail or _summary(self.faults) or self.title
        self.upstream = upstream
        self.retry_after = retry_after
        #: further members of the error document, such as the `connector_status` of a connector that is not ready
        self.extra = dict(extra or {})
        if self.is_outcome_unknown:
            self.retryable = False
        super().__init__(self.detail)

    @property
    def is_outcome_unknown(self) -> bool:
        """Whether a write was sent or accepted, and its response was lost."""
        return self.extra.get("outcome") == "unknown"


class RequestError(GatewayError):
    """The caller can fix it."""


class MalformedRequest(RequestError):
    code, title = "malformed_request", "Malformed request"


class OrganizationRequired(MalformedRequest):
    code, title = "organization_required", "Organization required"


class ConflictingRange(MalformedRequest):
    code, title = "conflicting_range", "Conflicting range"


class Unauthorized(RequestError):
    code, title = "unauthorized", "Unauthorized"

    #: why the caller lost its access during the request: a stream ends with it, and no response of HTTP has it
    reason = ""


class Forbidden(RequestError):
    code, title = "forbidden", "Forbidden"


class OrganizationForbidden(Forbidden):
    code, title = "organization_forbidden", "Organization forbidden"


class InsufficientScope(Forbidden):
    code, title = "insufficient_scope", "Insufficient scope"


class DeniedByPolicy(Forbidden):
    code, title = "denied_by_policy", "Denied by policy"


class ApproverIsRequester(Forbidden):
    code, title = "approver_is_requester", "The approver is the requester"


class PersonalConnector(Forbidden):
    code, title = "personal_connector", "Personal connector"


class NotFound(RequestError):
    code, title = "not_found", "Not found"


class UpstreamNotFound(NotFound):
    code, title = "upstream_not_found", "Not found in the application"


class ResultExpired(NotFound):
    code, title = "result_expired", "Result expired"


class CursorExpired(NotFound):
    code, title = "cursor_expired", "Cursor expired"

    @property
    def continues_after(self) -> int:
        """The id after which the feed can be read."""
        return int(self.extra["begins_after"])


class UploadExpired(NotFound):
    code, title = "upload_expired", "Upload expired"


class Conflict(RequestError):
    code, title = "conflict", "Conflict"


class IdempotencyInFlight(Conflict):
    code, title, retryable = "idempotency_in_flight", "Request in flight", True


class ConnectorNotReady(Conflict):
    code, title = "connector_not_ready", "Connector not ready"


class JobNotCancelable(Conflict):
    code, title = "job_not_cancelable", "Job not cancelable"


class JobCanceled(Conflict):
    code, title = "job_canceled", "Job canceled"


class ApprovalDenied(JobCanceled):
    code, title = "approval_denied", "Not approved"


class ApprovalExpired(JobCanceled):
    code, title = "approval_expired", "The approval has expired"


class ApprovalChanged(JobCanceled):
    """A policy, the requests, the records or the credentials changed since the approval was requested."""

    code, title = "approval_changed", "The approval is for something else"


class OutcomeUnknown(Conflict):
    code, title = "outcome_unknown", "Outcome unknown"


class UploadOffsetMismatch(Conflict):
    code, title = "upload_offset_mismatch", "Mismatching upload offset"


class BodyTooLarge(RequestError):
    code, title = "body_too_large", "Body too large"


class HeadersTooLarge(RequestError):
    code, title = "headers_too_large", "Request header fields too large"


class UnsupportedEncoding(RequestError):
    code, title = "unsupported_encoding", "Unsupported encoding"


class RangeNotSatisfiable(RequestError):
    code, title = "range_not_satisfiable", "Range not satisfiable"


class InvalidParams(RequestError):
    code, title = "invalid_params", "Invalid params"


class UnknownEntity(InvalidParams):
    code, title = "unknown_entity", "Unknown entity"


class UnknownAction(InvalidParams):
    code, title = "unknown_action", "Unknown action"


class UnknownConnectorType(InvalidParams):
    code, title = "unknown_connector_type", "Unknown connector type"


class CursorAhead(InvalidParams):
    """A cursor beyond the newest event; a client with a right one has it from before a backup was restored."""

    #: the id after which the feed can be read: that of its newest event
    continues_after = 0


class InvalidCredentials(InvalidParams):
    code, title = "invalid_credentials", "Invalid credentials"


class InvalidQuery(InvalidParams):
    code, title = "invalid_query", "Invalid query"


class InvalidPolicy(InvalidParams):
    code, title = "invalid_policy", "Invalid policy"


class IdempotencyMismatch(InvalidParams):
    code, title = "idempotency_mismatch", "Idempotency key used for another request"


class UpstreamRejected(InvalidParams):
    code, title = "upstream_rejected", "Rejected by the application"


class NotResumable(InvalidParams):
    code, title = "not_resumable", "The application does not support resumable uploads"


class PreconditionFailed(RequestError):
    code, title = "precondition_failed", "Precondition failed"


class ReauthorizationRequired(RequestError):
    code, title = "reauthorization_required", "Reauthorization required"


class RateLimited(RequestError):
    code, title, retryable = "rate_limited", "Rate limited", True


class BudgetSpent(RateLimited):
    """A budget of the organization has too little left; it is whole again at `resets_at`."""

    code, title = "budget_spent", "Budget spent"


class UpstreamRateLimited(RateLimited):
    code, title = "upstream_rate_limited", "Rate limited by the application"


class UpstreamQueueFull(RateLimited):
    """The application allows no further long operation until another one has ended."""

    code, title = "upstream_queue_full", "The application's concurrency limit is reached"


class UpstreamError(GatewayError):
    code, title, retryable = "upstream_error", "The application failed", True
    #: whether the response means, by the spec of the kind, that the application did not execute the request
    nothing_done: bool = False


class UpstreamBusy(UpstreamError):
    """The application did not execute the request and asks to repeat it later."""


class UpstreamInvalidResponse(UpstreamError):
    code, title, retryable = "upstream_invalid_response", "Invalid response from the application", False


class UpstreamTooLarge(UpstreamError):
    code, title, retryable = "upstream_too_large", "Response from the application is too large", False


class UpstreamTruncated(UpstreamError):
    code, title = "upstream_truncated", "Truncated response from the application"


class UpstreamTimeout(UpstreamError):
    code, title = "upstream_timeout", "The application did not answer in time"


class NotCached(GatewayError):
    code, title = "not_cached", "No fresh cached response"


class Unavailable(GatewayError):
    code, title, retryable = "unavailable", "Temporarily unavailable", True
    #: whether the dependency may have executed the request: the connection broke after it was sent
    was_sent: bool = False


class WorkerCrashed(GatewayError):
    code, title, retryable = "worker_crashed", "The job's worker crashed", True


class InternalError(GatewayError):
    code, title = "internal_error", "Internal error"


class OAuthError(Exception):
    """A refusal in the format of RFC 6749 §4.1.2.1 and §5.2, instead of a problem document."""

    def __init__(self, code: str, description: str, *, back: str | None = None, host_name: str = "") -> None:
        self.code = code
        self.description = description
        #: the redirect URI with the refusal in its query; None until the URI is verified to be the host's
        self.back = back
        #: the name of the host; empty until it is identified
        self.host_name = host_name
        super().__init__(description)


def _tree(root: type[GatewayError]) -> list[type[GatewayError]]:
    return [root, *(leaf for child in root.__subclasses__() for leaf in _tree(child))]


#: each code's class; a class that inherits its code does not replace its base
BY_CODE: Mapping[str, type[GatewayError]] = {cls.code: cls for cls in reversed(_tree(GatewayError))}


def with_unknown_outcome(error: GatewayError, known: Mapping[str, Any], *, safe_to_retry: bool) -> GatewayError:
    """A copy of the error of a request that may have been executed, with `outcome`, `known` and `safe_to_retry`."""
    members = {"outcome": "unknown", "known": dict(known), "safe_to_retry": safe_to_retry}
    return type(error)(
        error.detail,
        faults=error.faults,
        upstream=error.upstream,
        retry_after=error.retry_after,
        extra={**error.extra, **members},
    )


def document(error: GatewayError) -> dict[str, Any]:
    """The error as plain data for the job's row; the inverse of `restored`."""
    members: dict[str, Any] = {"code": error.code, "detail": error.detail, **error.extra}
    if error.faults:
        members["errors"] = [asdict(fault) for fault in error.faults]
    if error.upstream:
        members["upstream"] = asdict(error.upstream)
    if error.retry_after is not None:
        members["retry_after"] = error.retry_after
    return members


def restored(members: Mapping[str, Any]) -> GatewayError:
    """The error of the plain data that `document` returned; an unknown code becomes InternalError."""
    known = {"code", "detail", "errors", "upstream", "retry_after"}
    return BY_CODE.get(members["code"], InternalError)(
        members["detail"],
        faults=[FieldError(**fault) for fault in members.get("errors", ())],
        upstream=UpstreamFault(**members["upstream"]) if members.get("upstream") else None,
        retry_after=members.get("retry_after"),
        extra={name: value for name, value in members.items() if name not in known},
    )
