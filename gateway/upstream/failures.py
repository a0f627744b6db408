"""Turns a response of the application into the error that it is, if it is one."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime
from math import ceil
from typing import Any

import msgspec

from gateway.errors import (
    BY_CODE,
    GatewayError,
    ReauthorizationRequired,
    UpstreamBusy,
    UpstreamError,
    UpstreamFault,
    UpstreamInvalidResponse,
    UpstreamNotFound,
    UpstreamQueueFull,
    UpstreamRateLimited,
    UpstreamRejected,
)
from gateway.foundation import payloads
from gateway.foundation.aio.clock import CLOCK
from gateway.kinds.failures import Allowance, Failure
from gateway.kinds.members import EVERY, JsonPath, value_at
from gateway.upstream import allowances, refusals
from gateway.upstream.allowances import left_until
from gateway.upstream.redaction import Secrets
from gateway.upstream.responses import (
    ARRAY_BEGIN,
    MAX_PARSED_BODY,
    OBJECT_BEGIN,
    UpstreamResponse,
    first_byte,
    is_list,
    raw_at,
)
from gateway.upstream.sent_requests import request_id_of

#: seconds to wait after a 429 without `Retry-After`
DEFAULT_RETRY_AFTER = 30
#: seconds of the longest wait that an application may mean
_LONGEST_WAIT = 366 * 86_400
#: characters of an application's message that an error repeats
_MESSAGE_CHARACTERS = 500
#: JSON values that count as absent
_NOTHING = frozenset({b"null", b"false", b"0", b"[]", b"{}", b'""'})
#: the members of a response of GraphQL
_OF_GRAPHQL = ("data", "errors")
#: bytes of a member of a failure larger than `MAX_PARSED_BODY` that is parsed
_MAX_PARSED_MEMBER = 64 << 10


def failure(
    spec: Failure,
    response: UpstreamResponse,
    limits: Sequence[Allowance] = (),
) -> GatewayError | None:
    """The error for a response, with the request's secrets masked; None for a success.

    `limits` are the allowances that headers report.
    """
    is_refusal = response.status >= 300 or response.status < 200
    hides_failure = not is_refusal and (
        (bool(spec.when_present) and _has_any(spec, response)) or (bool(spec.when_equal) and _has_equal(spec, response))
    )
    if not is_refusal and not hides_failure and (spec.ok is None or _is_true(spec, response, spec.ok)):
        return None
    document, secrets = _lenient(spec, response), response.secrets
    if not is_refusal and not hides_failure and (not isinstance(document, dict) or spec.ok not in document):
        return UpstreamInvalidResponse("the application's answer does not say whether it succeeded")
    code, safe = _first_text(document, spec.code), _masked(document, secrets)
    safe_code, message = _first_text(safe, spec.code), _first_text(safe, spec.message)
    message = refusals.with_details(spec, safe, safe_code, message) or refusals.usual_words(spec, safe, safe_code)
    if message is None and document is None and (line := refusals.first_line(response.body)) is not None:
        message = secrets.masked(line)
    fault = fault_of(response)
    fault = replace(
        fault,
        code=safe_code,
        message=message,
        request_id=_first_text(safe, spec.request_id) or fault.request_id,
        field=refusals.field(spec, safe),
    )
    wait = refusals.wait_of(spec, document, code, response.status)
    cls = _class_by_code(spec, code)
    if cls is None:
        is_spent = response.status == 403 and (wait.is_limit or bool(allowances.spent(limits, response.headers)))
        cls = UpstreamRateLimited if is_spent else _class_by_status(response.status)
    error = _error_of(spec, cls, fault=fault, waiting=wait, headers=response.headers, limits=limits)
    if isinstance(error, UpstreamError):
        error.nothing_done = not {code, str(response.status)}.isdisjoint(spec.nothing_done)
    return error


def scopes_missing(response: UpstreamResponse, scopes: Sequence[str]) -> ReauthorizationRequired:
    """The error of a call that needs more access than the person has given."""
    named = " ".join(scopes)
    return ReauthorizationRequired(
        f"the application asks for more access: a person must authorize the connector again, with the scopes {named}",
        upstream=fault_of(response),
        extra={"scopes": list(scopes)},
    )


def fault_of(response: UpstreamResponse) -> UpstreamFault:
    """The response, as an error names it: without the request's secrets."""
    return UpstreamFault(status=response.status, request_id=request_id_of(response.headers, response.secrets) or None)


def _stated(spec: Failure, response: UpstreamResponse) -> Mapping[str, msgspec.Raw]:
    """The members that say whether it is an error and what failed, and perhaps others; read once for all questions."""
    return response.members(refusals.places_of(spec) if len(response.body) > MAX_PARSED_BODY else ())


def was_executed(response: UpstreamResponse) -> bool:
    """Whether the response to a mutation of GraphQL has errors of what it has done, beside or in place of its data.

    After an error within the data, which may make them null, the mutation was executed (GraphQL §6.4.4). A mutation
    that was refused as a whole has no data, or an error at the place of the mutation itself.
    """
    if not 200 <= response.status < 300 or is_list(response.body):
        return False
    try:
        found = response.members(_OF_GRAPHQL)
        data, errors = (payloads.value(found[name]) if name in found else None for name in _OF_GRAPHQL)
    except UpstreamInvalidResponse:
        return True
    if "data" not in found or not isinstance(errors, list):
        return False
    paths = (error.get("path") for error in errors if isinstance(error, dict))
    is_within = any(isinstance(path, list) and len(path) > 1 for path in paths)
    return is_within or (bool(errors) and isinstance(data, dict) and any(each is not None for each in data.values()))


def _has_any(spec: Failure, response: UpstreamResponse) -> bool:
    """Whether a successful response has a value at one of the paths of a failure."""
    if not response.body or response.body.isspace() or is_list(response.body):
        return False
    try:
        found = _stated(spec, response)
    except UpstreamInvalidResponse:
        return False
    return any(_has_something(found[place[0]], place[1:]) for place in spec.when_present if place[0] in found)


def _has_equal(spec: Failure, response: UpstreamResponse) -> bool:
    """Whether a successful response has one of the texts of a failure at its path."""
    if not response.body or response.body.isspace() or is_list(response.body):
        return False
    try:
        for path, text in spec.when_equal.items():
            first, *rest = path.split(".")
            raw = _stated(spec, response).get(first)
            found = None if raw is None else raw_at(raw, tuple(rest))
            if found is not None and payloads.value(found) == text:
                return True
    except UpstreamInvalidResponse:
        return False
    return False


def _has_something(raw: msgspec.Raw, place: JsonPath) -> bool:
    if not place:
        return bytes(memoryview(raw)) not in _NOTHING
    if len(raw) <= MAX_PARSED_BODY:
        value = payloads.value(raw)
        return value_at(value, place) is True or refusals.has_text(value, place)
    return any(_has_something(each, place[1:]) for each in _inner(raw, place[0]))


def _inner(raw: msgspec.Raw, member: str) -> Collection[msgspec.Raw]:
    """The values in a large one that a step of a path leads to: `*` to each, a name or number to one."""
    begin, is_every = first_byte(raw), member == EVERY
    if begin == OBJECT_BEGIN:
        return (payloads.few_members(raw) if is_every else payloads.members_of(raw, (member,))).values()
    if begin == ARRAY_BEGIN and (is_every or member.isdigit()):
        items = payloads.items(raw)
        return items if is_every else items[int(member) : int(member) + 1]
    return ()


def _is_true(spec: Failure, response: UpstreamResponse, member: str) -> bool:
    """Whether a member of a successful answer is true; the answer may be of any size."""
    try:
        raw = _stated(spec, response).get(member)
    except UpstreamInvalidResponse:
        return False
    return raw is not None and bytes(memoryview(raw)) == b"true"


def foreign_failure(status: int, headers: Mapping[str, str]) -> GatewayError:
    """The error for a response of a host other than the application's; it does not repeat the response's text."""
    fault, words = UpstreamFault(status=status), f"the host of the file answered {status}"
    match status:
        case 404 | 410:
            return UpstreamNotFound(words, upstream=fault)
        case 429:
            return UpstreamRateLimited(words, upstream=fault, retry_after=retry_after(headers) or DEFAULT_RETRY_AFTER)
        case _ if status >= 500:
            return UpstreamError(words, upstream=fault)
        case _:
            return UpstreamInvalidResponse(words, upstream=fault)


def _masked(document: Any, secrets: Secrets) -> Any:
    """The document with the secrets masked in every member."""
    try:
        return payloads.value(secrets.masked(msgspec.json.encode(document).decode()).encode())
    except (UpstreamInvalidResponse, RecursionError):
        return None


def _error_of(
    spec: Failure,
    cls: type[GatewayError],
    fault: UpstreamFault,
    waiting: refusals.StatedWait,
    headers: Mapping[str, str],
    limits: Sequence[Allowance],
) -> GatewayError:
    words = "".join(f": {part}" for part in (fault.code, fault.message) if part)
    words = f"the application answered {fault.status}{words}"
    if fault.field and fault.field not in words:
        words = f"{words} ({fault.field})"
    wait = retry_after(headers)
    if issubclass(cls, UpstreamRateLimited):
        words = f"{words}; the allowance of a day is used up" if waiting.is_day else words
        wait = wait or _limit_wait(spec, waiting, headers, limits)
    elif waiting.seconds is not None and cls is not UpstreamQueueFull:
        cls, wait = UpstreamBusy, wait or waiting.seconds
    return cls(words, upstream=fault, retry_after=wait)


def _limit_wait(
    spec: Failure, waiting: refusals.StatedWait, headers: Mapping[str, str], limits: Sequence[Allowance]
) -> int:
    """Seconds to wait after a rate-limit error without `Retry-After`: until the allowances that are spent are reset."""
    now = CLOCK.unix_time()
    wait = allowances.full_again(allowances.spent(limits, headers), now)
    scarcest = allowances.scarcest_full(limits, headers, now)
    # The limit that the application names is another one if something is left of those that headers report.
    wait = wait or (waiting.seconds if waiting.is_limit and scarcest else scarcest)
    wait = wait or refusals.reset_in(headers, spec.reset_headers) or waiting.seconds
    return wait or spec.default_retry_after or DEFAULT_RETRY_AFTER


def _class_by_code(spec: Failure, code: str | None) -> type[GatewayError] | None:
    return next((BY_CODE[ours] for ours, theirs in spec.codes.items() if code in theirs), None)


def _class_by_status(status: int) -> type[GatewayError]:
    match status:
        # an error with the status of a success, whose code the spec does not list as the application's own fault
        case status if 200 <= status < 300:
            return UpstreamRejected
        case status if status < 400:  # redirects are never followed, and no API answers with anything else
            return UpstreamInvalidResponse
        case 401:
            return ReauthorizationRequired
        case 404 | 410:
            return UpstreamNotFound
        case 429 | 529:
            return UpstreamRateLimited
        case 400 | 402 | 403 | 405 | 406 | 408 | 409 | 412 | 413 | 414 | 415 | 422 | 423 | 451:
            return UpstreamRejected
        case _:
            return UpstreamError


def retry_after(headers: Mapping[str, str]) -> int | None:
    """Whole seconds of a `Retry-After` (RFC 9110 §10.2.3), at least one; a fraction is rounded up.

    A number that is a Unix time is read as one, as some applications write it. A wait beyond a year is none.
    """
    value = headers.get("retry-after", "")
    try:
        seconds = max(1, ceil(left_until(float(value), CLOCK.unix_time())))
    except ValueError:
        return _until(value, headers.get("date", ""))
    except OverflowError:
        return None
    return seconds if seconds <= _LONGEST_WAIT else None


def _until(moment: str, now: str) -> int | None:
    """Seconds from one HTTP-date to another; from the gateway's clock if the response has no `Date`."""
    try:
        then = parsedate_to_datetime(moment)
        began = parsedate_to_datetime(now) if now else CLOCK.now()
        seconds = max(1, ceil((then - began).total_seconds()))
    except (ValueError, TypeError, OverflowError):
        return None
    return seconds if seconds <= _LONGEST_WAIT else None


def _lenient(spec: Failure, response: UpstreamResponse) -> Any:
    """The parsed body of an error response, or None: an error page in HTML must not hide the status.

    Only small members that may say what failed are parsed in a large body, because error messages are short.
    """
    try:
        if len(response.body) <= MAX_PARSED_BODY:
            return payloads.value(response.body)
        members = _stated(spec, response)
        return {name: payloads.value(raw) for name, raw in members.items() if len(raw) <= _MAX_PARSED_MEMBER}
    except UpstreamInvalidResponse:
        return None


def _first_text(document: Any, paths: tuple[JsonPath, ...]) -> str | None:
    for path in paths:
        value = value_at(document, path)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return refusals.words_of(str(value)[:_MESSAGE_CHARACTERS])
    return None
