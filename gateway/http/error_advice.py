"""What each error code means and what to do about it: the text of `/docs/errors` and of docs/reference/errors.md."""

from collections.abc import Mapping

from gateway.jobs.maintenance import MAX_LOSSES, MAX_LOSSES_AMONG_OTHERS

#: by code; words in backticks are code
ADVICE: Mapping[str, str] = {
    "malformed_request": "The request cannot be read: no JSON, a header of the wrong form. `detail` says which.",
    "organization_required": "The client can access several organizations: name one in `X-Organization-Id`.",
    "conflicting_range": "`params.range_header` and `Range` differ: send one of them.",
    "unauthorized": "The token is unknown, expired or revoked: get a new one.",
    "forbidden": "The client may not do this.",
    "organization_forbidden": "The client has no access to the organization in `X-Organization-Id`.",
    "insufficient_scope": "The client lacks the scope that `detail` names; an operator gives it.",
    "foreign_form": "A form of the console that none of its pages can have sent: load the page again.",
    "sign_in_refused": "On a page: the sign-in provider's answer does not hold, or the person was not added.",
    "not_found": "Nothing of this organization has this id, or nothing is at this path.",
    "upstream_not_found": "The application has no such record.",
    "method_not_allowed": "The path takes other methods: `Allow`.",
    "conflict": "It contradicts how things stand; `detail` says how they do. A second connector of one name, where "
    "`if_exists` is `fail`, names the first in `connector_id`.",
    "idempotency_in_flight": "The first request with this `Idempotency-Key` is not answered yet.",
    "connector_not_ready": "The connector is pending or disabled; `detail` names the next step.",
    "job_not_cancelable": "The job has ended.",
    "job_canceled": "The result of a job that was canceled; what was done before stands in `result`.",
    "outcome_unknown": (
        "A write may have been done, and its answer was lost: look in the application, then retry the job with "
        "`confirm`. `known.request_sent` is `true` if its first byte certainly went out, else `maybe`."
    ),
    "result_expired": "The result was kept for `GATEWAY_JOB_RETENTION` seconds.",
    "cursor_expired": (
        "The events after this cursor are older than `GATEWAY_EVENT_RETENTION` seconds, or more than "
        "`GATEWAY_ORGANIZATION_EVENTS`: read what you need anew, then go on with `after` as `begins_after`."
    ),
    "body_too_large": "The body is larger than `GATEWAY_MAX_BODY_BYTES`.",
    "unsupported_encoding": "Send the body without `Content-Encoding`.",
    "range_not_satisfiable": "The file has none of these bytes; `Content-Range` tells its size.",
    "invalid_params": "Params or members are wrong: `errors` names all of them, `example` is a call that is right.",
    "unknown_entity": "The kind has no such entity; the nearest are named.",
    "unknown_action": "The entity has no such action; those that it has are named.",
    "unknown_connector_type": "There is no such kind; the nearest are named.",
    "invalid_credentials": "Credentials are incomplete, or the application refused them.",
    "invalid_query": "A filter, sort or field of a search is wrong; `errors` has its path.",
    "idempotency_mismatch": "The `Idempotency-Key` was used for another body: take a new key.",
    "upstream_rejected": "The application refused the params; `upstream` has its words.",
    "reauthorization_required": "The application refused the stored credentials: authorize again.",
    "rate_limited": "The gateway's own limit for the client or its organization.",
    "upstream_rate_limited": "The application's limit.",
    "upstream_queue_full": "The application runs as many long operations as it takes.",
    "internal_error": "A bug of the gateway: report it with `request_id`.",
    "upstream_error": "The application failed.",
    "upstream_invalid_response": "The application's answer cannot be understood.",
    "upstream_too_large": "The application's answer is larger than the gateway takes: ask for less.",
    "upstream_truncated": "The application's answer was cut short.",
    "worker_crashed": (
        f"The job lost its worker {MAX_LOSSES} times in a row without progress; {MAX_LOSSES_AMONG_OTHERS} times where "
        "other jobs ran on the same worker."
    ),
    "unavailable": "A part of the gateway is away or full; `Retry-After`.",
    "provider_unavailable": "On a page: the sign-in provider cannot be used; `detail` says why.",
    "not_cached": "`only-if-cached`, and nothing is remembered that fits.",
    "upstream_timeout": "The application did not answer in time.",
}
