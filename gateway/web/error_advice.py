"""The meaning of each error code, and what to do: the text of `/docs/errors` and of docs/reference/errors.md."""

from collections.abc import Mapping

from gateway.jobs.maintenance import MAX_LOSSES, MAX_LOSSES_AMONG_OTHERS

#: by code; words in backticks are code
ADVICE: Mapping[str, str] = {
    "malformed_request": "The request cannot be parsed: invalid JSON, or a malformed header. `detail` says which.",
    "organization_required": "The client can access several organizations: name one in `X-Organization-Id`.",
    "conflicting_range": "`params.range_header` and `Range` differ: send one of them.",
    "unauthorized": "The token is unknown, expired or revoked: get a new one.",
    "forbidden": "The client may not do this.",
    "organization_forbidden": "The client cannot access the organization in `X-Organization-Id`.",
    "personal_connector": "The connector is a person's own; administrators can only list, disable and delete it.",
    "insufficient_scope": "The client lacks the scope that `detail` names; an operator can add it.",
    "denied_by_policy": (
        "A policy of the organization does not allow the call, or no policy permits it. `policy` names the policy, "
        "`advice` is its author's advice."
    ),
    "form_sent_twice": "The form was sent before: reload the page to see what it did, or to send it again.",
    "foreign_form": "The form was not sent by a page of this console session: reload the page.",
    "sign_in_refused": "On a page: the sign-in provider's response is invalid, or the person was not added.",
    "not_found": (
        "The organization has nothing with this id, or the path does not exist. `detail` has the nearest names where a "
        "name was sent in place of an id."
    ),
    "upstream_not_found": "The application has no such record.",
    "method_not_allowed": "The path does not support this method; `Allow` lists the supported ones.",
    "conflict": "The request contradicts the current state, which `detail` describes. For a second connector of one "
    "name with `if_exists: fail`, `connector_id` is the first.",
    "idempotency_in_flight": "The first request with this `Idempotency-Key` has not been answered yet.",
    "connector_not_ready": "The connector is pending, disabled or unserved; `detail` names the next step.",
    "job_not_cancelable": "The job has ended, or it is a deletion.",
    "job_canceled": "The job was canceled; `result` has what was done before.",
    "approver_is_requester": "Who asks for an approval cannot decide about it: somebody else must.",
    "approval_denied": "A person denied the call; the approval has the reason.",
    "approval_expired": "Nobody approved the call in time: send it again.",
    "approval_changed": (
        "A policy, the requests, the records or the credentials changed since the approval was requested: send the "
        "call again. For who decides: read the approval again."
    ),
    "outcome_unknown": (
        "A write may have happened; its response was lost, or was a 5xx (`known.response_status`). Check the "
        "application, then retry the job with `confirm`. `known.request_sent` is `true` if the first byte was "
        "certainly sent, else `maybe`."
    ),
    "result_expired": "The result has expired: it is kept for `GATEWAY_JOB_RETENTION` seconds.",
    "cursor_expired": (
        "The events after this cursor are older than `GATEWAY_EVENT_RETENTION` seconds, or more than "
        "`GATEWAY_ORGANIZATION_EVENTS`: read the current state again, then continue with `after` set to `begins_after`."
    ),
    "upload_expired": "The application has ended the upload: start it again, and send the file from its beginning.",
    "upload_offset_mismatch": (
        "The request does not continue at the upload's offset: send the rest of the file from `expected_offset`, "
        "which is in the header `Upload-Offset` too."
    ),
    "not_resumable": (
        "The application takes a file in one request only: leave out `Upload-Complete`, and send the file again if the "
        "connection breaks."
    ),
    "precondition_failed": "`If-Match` names another version: read the current one, and change that.",
    "body_too_large": (
        "The body is larger than `GATEWAY_MAX_BODY_BYTES`, an uploaded file larger than `GATEWAY_MAX_UPLOAD_BYTES`, or "
        "a notice of an application larger than `GATEWAY_MAX_NOTICE_BYTES`."
    ),
    "headers_too_large": (
        "A header is longer than 8 KiB, all together are longer than 32 KiB, or there are too many. In a browser, "
        "delete the cookies of this host; other applications of the host have set them."
    ),
    "unsupported_encoding": "Send the body without `Content-Encoding`.",
    "range_not_satisfiable": "The range is outside the file; `Content-Range` has the file's size.",
    "invalid_params": "Params or members are invalid: `errors` lists all of them, `example` is a valid call.",
    "unknown_entity": "The kind has no such entity; `detail` names the nearest.",
    "unknown_action": "The entity has no such action; `detail` names those it has.",
    "unknown_connector_type": "There is no such kind; `detail` names the nearest.",
    "invalid_credentials": "Credentials are incomplete, or the application refused them.",
    "invalid_query": "A filter, sort or field of a search is wrong; `errors` has its path.",
    "invalid_policy": (
        "The policy has faults of syntax, or does not fit the schema: `errors` lists all of them with line, column and "
        "the nearest name."
    ),
    "idempotency_mismatch": "The `Idempotency-Key` was used with another body: use a new key.",
    "upstream_rejected": "The application rejected the params; `upstream` has its message.",
    "reauthorization_required": "The application refused the stored credentials: authorize again.",
    "rate_limited": "The gateway's rate limit for the client or its organization is reached.",
    "upstream_rate_limited": "The application's rate limit is reached.",
    "upstream_queue_full": "The application's limit of concurrent long operations is reached.",
    "budget_spent": (
        "A budget has too little left for the call; `budget` names it, `resets_at` says when it is whole again."
    ),
    "internal_error": "A bug of the gateway: report it with `request_id`.",
    "upstream_error": "The application failed.",
    "upstream_invalid_response": "The application's response cannot be parsed.",
    "upstream_too_large": "The application's response exceeds the gateway's limit: request less.",
    "upstream_truncated": "The application's response ended early.",
    "worker_crashed": (
        f"The job lost its worker {MAX_LOSSES} times in a row without progress; {MAX_LOSSES_AMONG_OTHERS} times where "
        "other jobs ran on the same worker."
    ),
    "unavailable": "A part of the gateway is unavailable or overloaded; retry after `Retry-After`.",
    "provider_unavailable": "On a page: the sign-in provider is unavailable; `detail` says why.",
    "not_cached": "`only-if-cached` was sent, and no cached response matches.",
    "upstream_timeout": "The application did not respond in time.",
}
