"""Models of what the application refuses: its error responses, and its limits."""

from typing import Literal

from pydantic import Field

from gateway.kinds.members import JsonPath, Model


class Failure(Model):
    """How the application reports an error."""

    #: paths of its own error code and message, the first that holds text wins
    code: tuple[JsonPath, ...] = ()
    message: tuple[JsonPath, ...] = ()
    #: paths of further words: every text below them is added to the message; `*` is each item or member
    details: tuple[JsonPath, ...] = ()
    #: paths of the names of members of the request that it complains about, the first that holds any wins
    field: tuple[JsonPath, ...] = ()
    #: place of its id for the request, in the answer
    request_id: tuple[JsonPath, ...] = ()
    #: a member that must be true for an answer to count as a success
    ok: str | None = None
    #: places where a successful response has nothing: null, false and what is empty do not count; `*` is each member
    when_present: tuple[JsonPath, ...] = ()
    #: application codes that mean something whatever the status: gateway error code → application codes
    codes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    #: paths of the name of the limit that was hit, where there are several
    limit_name: tuple[JsonPath, ...] = ()
    #: temporary refusals, by limit, code or status (`*` at the end for any rest) → seconds until then, or `day` for the
    #: allowance of a day
    retry_after: dict[str, int | Literal["day"]] = Field(default_factory=dict)
    #: seconds for which a limit is waited for where nothing else says how long; left out, those of the rate limit
    default_retry_after: int | None = None
    #: headers that tell, beside Retry-After, when an allowance is full again: seconds or a Unix time
    reset_headers: tuple[str, ...] = ()


class Allowance(Model):
    """One of the application's limits, as headers of its answers tell of it; header names in lower case."""

    #: headers that hold one number each: the limit, what is left of it, and when it is full again, in seconds or as a
    #: Unix time
    limit: str | None = None
    remaining: str | None = None
    reset: str | None = None
    #: a header with all values as `name=number`, with a final `*` for any rest; and the meaning of its names:
    #: `limit`, `remaining`, `reset`, or `used` where it is written `name=used/limit`; `""` is a header without names
    header: str | None = None
    members: dict[Literal["limit", "remaining", "reset", "used"], str] = Field(default_factory=dict)
    #: seconds of its window, where it is another than the rate limit's
    seconds: int | None = None
    #: whether it is of some requests only: that nothing is left of it slows the others down and stops none
    per_endpoint: bool = False


class RateLimit(Model):
    """The application's published budget for one connector; what its answers say goes before it."""

    #: the defaults suit applications that publish no limit: 429 and `Retry-After` slow requests down further
    requests: int = 120
    seconds: int = 60
    concurrent: int | None = None
    #: the limits that headers of its answers report
    allowances: tuple[Allowance, ...] = ()
