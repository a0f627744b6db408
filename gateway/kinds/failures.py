"""Models of the application's error responses and rate limits."""

from typing import Literal

from pydantic import Field

from gateway.kinds.members import JsonPath, Model


class Failure(Model):
    """How the application reports an error."""

    #: paths of the application's error code; the first that holds text counts
    code: tuple[JsonPath, ...] = ()
    #: paths of the application's message; the first that holds text counts
    message: tuple[JsonPath, ...] = ()
    #: paths of details: every text below them is added to the message; `*` is each item or member
    details: tuple[JsonPath, ...] = ()
    #: paths of the names of the request's members that the error is about; the first that holds any counts
    field: tuple[JsonPath, ...] = ()
    #: paths of the application's id of the request; the first that holds text counts
    request_id: tuple[JsonPath, ...] = ()
    #: a member that must be true in a successful response
    ok: str | None = None
    #: paths at which a successful response has no value; null, false, 0 and empty values do not count; `*` is each
    #: member
    when_present: tuple[JsonPath, ...] = ()
    #: path → the text at it by which a response with the status of a success is a failure
    when_equal: dict[str, str] = Field(default_factory=dict)
    #: the gateway's error code → the application's codes that mean it, whatever the status
    codes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    #: paths of the name of the limit that was hit, if there are several limits
    limit_name: tuple[JsonPath, ...] = ()
    #: temporary errors: the name of a limit, a code or a status (`*` at the end for any rest) → seconds to wait, or
    #: `day` for the allowance of a day
    retry_after: dict[str, int | Literal["day"]] = Field(default_factory=dict)
    #: statuses from 500 on, and codes, of responses by which the application states that it did nothing; after any
    #: other such response it is unknown whether a write was done
    nothing_done: tuple[str, ...] = ()
    #: messages of a 404 that mean a list without records; `*` at the end stands for any rest
    no_records: tuple[str, ...] = ()
    #: seconds to wait after a rate-limit error that names no time; by default the window of the rate limit, at most 60
    default_retry_after: int | None = None
    #: headers other than Retry-After that name the wait: seconds or a Unix time
    reset_headers: tuple[str, ...] = ()


class Allowance(Model):
    """One of the application's limits, as response headers report it; header names in lower case."""

    #: the header with the number of requests that the limit allows
    limit: str | None = None
    #: the header with the number of requests that remain
    remaining: str | None = None
    #: the header with the time until the limit is reset: seconds or a Unix time
    reset: str | None = None
    #: a header with all values as `name=number`, instead of the three above; a final `*` matches any rest of its
    #: name
    header: str | None = None
    #: the names of the values in `header`: of `limit`, `remaining` and `reset`, or of `used` in `name=used/limit`; `""`
    #: for a header without names
    members: dict[Literal["limit", "remaining", "reset", "used"], str] = Field(default_factory=dict)
    #: seconds of its window, if it differs from the rate limit's
    seconds: int | None = None
    #: whether the limit covers only some requests; when nothing of it is left, the gateway slows all requests down but
    #: does not stop them
    per_endpoint: bool = False


class RateLimit(Model):
    """The application's published limit for one connector; limits in response headers take precedence."""

    # The defaults are for applications that publish no limit: 429 and `Retry-After` slow requests down further.
    #: the number of requests in `seconds`
    requests: int = 120
    seconds: int = 60
    concurrent: int | None = None
    #: the limits that response headers report
    allowances: tuple[Allowance, ...] = ()
