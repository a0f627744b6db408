"""Errors: problem documents (RFC 9457), and the formats of jobs and OAuth endpoints."""

from typing import Annotated, Any, Literal

from msgspec import Raw, Struct

from gateway.contract.members import Id, Time, member
from gateway.errors import BY_CODE

#: the codes of the error tree, and that of status 405 (RFC 9110 §15.5.6)
_CODES = sorted((*BY_CODE, "method_not_allowed"))
_MESSAGE = "tickets.list: sort_order is 'up'; allowed: asc, desc"
_KNOWN = "The facts known about the write: when it was sent, how to look it up, what was finished."


class FaultView(Struct, frozen=True):
    """One fault of a request."""

    pointer: Annotated[str, member("A JSON pointer into the request (RFC 6901).", "/params/sort_order")]
    field: Annotated[str, member("The dotted path of the member.", "sort_order")]
    code: Annotated[str, member("The kind of fault.", "enum")]
    message: Annotated[str, member("What was sent, what is allowed and the nearest known name.", _MESSAGE)]


class UpstreamFaultView(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The application's own description of an error."""

    status: Annotated[int | None, member("The application's status.", 503)] = None
    code: Annotated[str | None, member("The application's error code.", "Unavailable")] = None
    message: Annotated[str | None, member("The application's message, with secrets removed.", "try again later")] = None
    request_id: Annotated[str | None, member("The application's id of the request, to quote to its support.")] = None
    field: Annotated[str | None, member("The part of the request that the application names.")] = None


class ErrorFacts(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Members that only some errors have."""

    outcome: Annotated[Literal["unknown"] | None, member("`unknown`: the write may have happened.")] = None
    known: Annotated[dict[str, Any] | None, member(_KNOWN)] = None
    safe_to_retry: Annotated[bool | None, member("Whether the request can be sent again without harm.")] = None
    example: Annotated[dict[str, Any] | None, member("Of refused params: a valid call.")] = None
    connector_status: Annotated[str | None, member("Of a connector that is not ready: its status.")] = None
    connector_id: Annotated[Id | None, member("Of a name that is taken: the connector with that name.")] = None
    next_step: Annotated[str | None, member("Of a connector that is not ready: what to do.")] = None
    allowed: Annotated[str | None, member("Of 405: the methods that the path supports.")] = None
    size: Annotated[int | None, member("Of 416: the size of the file in bytes.")] = None
    begins_after: Annotated[int | None, member("Of a cursor that is too old: the `after` of the oldest events.")] = None
    expected_offset: Annotated[int | None, member("Of an upload: the byte of the file at which it continues.")] = None
    policy: Annotated[str | None, member("Of a refusal by a policy: its `@id`, else its name.")] = None
    advice: Annotated[str | None, member("Of a refusal by a policy: its `@advice`.")] = None
    budget: Annotated[str | None, member("Of a spent budget: its name.")] = None
    resets_at: Annotated[Time | None, member("Of a spent budget: when it is whole again.")] = None
    line: Annotated[int | None, member("Of a faulty policy: the line of the first fault.")] = None
    column: Annotated[int | None, member("Of a faulty policy: the column of the first fault.")] = None
    errors: Annotated[list[FaultView] | None, member("All faults; each message is a complete sentence.")] = None
    scopes: Annotated[
        list[str] | None, member("Of a call that needs more access: scopes that the next consent will request.")
    ] = None
    upstream: Annotated[UpstreamFaultView | None, member("The application's own error.")] = None


class JobErrorView(ErrorFacts, frozen=True, kw_only=True):
    """The error that a job ended with."""

    code: Annotated[str, member("The error code to match on.", "upstream_error", enum=_CODES)]
    detail: Annotated[str, member("What is wrong.", "the application failed")]
    retry_after: Annotated[int | None, member("Seconds after which a retry may succeed.")] = None


class Problem(ErrorFacts, frozen=True, kw_only=True):
    """RFC 9457. `message` repeats `detail`."""

    type: Annotated[str, member("The code as a URN.", "urn:gateway:error:invalid_params")]
    title: Annotated[str, member("The code in words.", "Invalid params")]
    status: Annotated[int, member("The HTTP status.", 422)]
    code: Annotated[str, member("The error code to match on.", "invalid_params", enum=_CODES)]
    detail: Annotated[str, member("What is wrong, and how to fix it.", _MESSAGE)]
    message: Annotated[str, member("The same as `detail`, for clients that read only `message`.", _MESSAGE)]
    retryable: Annotated[bool, member("Whether the same request may be sent again.", False)]
    request_id: Annotated[str, member("The request's id; quote it when you ask for help.", "5e1f0c3d")]
    docs: Annotated[
        str, member("The page that explains the code.", "/docs/errors/invalid_params", format="uri-reference")
    ]
    result: Annotated[Raw | None, member("Of a job that ended early: the result until then.")] = None


class OAuthErrorView(Struct, frozen=True):
    """An error of an OAuth endpoint (RFC 6749 §5.2)."""

    error: Annotated[str, member("The error code (RFC 6749 §5.2).", "invalid_client")]
    error_description: Annotated[str, member("What is wrong.", "the client is unknown or the secret is wrong")]
