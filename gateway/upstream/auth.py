"""Turns credentials into headers and query members, and checks that they are complete for their method."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from itertools import islice
from time import monotonic
from typing import Any, Protocol

from gateway.errors import MAX_FAULTS, FieldError, InvalidCredentials, ReauthorizationRequired
from gateway.foundation.aio.turns import computing_for
from gateway.foundation.least_used import LeastUsed
from gateway.kinds.authentication import Assertion, AuthMethod
from gateway.kinds.spec import ConnectorSpec
from gateway.kinds.suggestions import did_you_mean
from gateway.upstream.private_keys import MAX_KEY, BadKey, read_private_key

#: begins the name of a credential that is sent in the query: no header's name can begin so (RFC 9110 §5.6.2)
QUERY_PREFIX = "?"
#: seconds after a doubtful renewal in which there is no other one
_SETTLED = 600.0
#: maximum rate scopes that are remembered
_MAX_SETTLED = 10_000


class Authorizer(Protocol):
    """Adds a connector's credentials to requests, and renews them."""

    async def headers(self) -> Mapping[str, str]:
        """The headers that authenticate a request now; a token about to expire is renewed first."""

    async def used(self) -> Sequence[Mapping[str, str]]:
        """The headers of the latest requests, whose values a later answer of the application may repeat."""

    async def renewed(self, refused: Mapping[str, str]) -> Mapping[str, str] | None:
        """New headers after the application refused these; None if the credentials cannot be renewed."""

    async def refused(self, credentials: Mapping[str, str], reason: str) -> None:
        """Note that the application refused these headers permanently; a stored connector becomes `needs_reauth`."""

    async def needs_scopes(self, scopes: Sequence[str]) -> None:
        """Note that the application refused a call that needs these scopes; the next consent requests them too."""


class StaticAuthorizer:
    """Credentials that cannot be renewed."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    async def used(self) -> Sequence[Mapping[str, str]]:
        return [self._headers]

    async def renewed(self, refused: Mapping[str, str]) -> Mapping[str, str] | None:
        return None

    async def refused(self, credentials: Mapping[str, str], reason: str) -> None:
        """Do nothing: there is no stored connector to mark."""

    async def needs_scopes(self, scopes: Sequence[str]) -> None:
        """Do nothing: there is no stored connector whose next consent could request them."""


class Doubts:
    """Remembers, by rate scope, when credentials were renewed because a refusal might have meant that they expired.

    Soon after that a refusal means what it says, so that each of a caller's wrong ids does not cost a renewal.
    """

    def __init__(self) -> None:
        #: rate scope → the end of that time, by the monotonic clock
        self._settled: dict[str, float] = {}
        self._used: LeastUsed[str] = LeastUsed(_MAX_SETTLED)

    def is_settled(self, scope_id: str) -> bool:
        return monotonic() < self._settled.get(scope_id, 0.0)

    def settle(self, scope_id: str) -> None:
        self._used.discard(scope_id)
        self._settled[scope_id] = monotonic() + _SETTLED
        for dropped in self._used.add(scope_id, computing_for()):
            del self._settled[dropped]


def headers_for(method: AuthMethod, credentials: Mapping[str, str]) -> dict[str, str]:
    """The headers of a method: RFC 6750 bearer, RFC 7617 Basic, or those of an API key.

    A key that is sent in the query has a name that begins with `?`. A header without its optional credential is left
    out. Raises ReauthorizationRequired while a token is missing.
    """
    if method.scheme == "bearer":
        return {"Authorization": f"Bearer {_required(credentials, method.token or '')}"}
    if method.scheme in ("api_key", "none"):
        templates = {**method.headers, **{f"{QUERY_PREFIX}{name}": text for name, text in method.query.items()}}
        return {
            name: _filled(template, credentials)
            for name, template in templates.items()
            if all(credentials.get(field) for field in method.optional_in(template))
        }
    halves = ":".join((template or "").format_map(credentials) for template in (method.username, method.password))
    return {"Authorization": f"Basic {b64encode(halves.encode()).decode()}"}


def _required(credentials: Mapping[str, str], field: str) -> str:
    value = credentials.get(field)
    if not value:
        raise ReauthorizationRequired(f"the connector has no {field} yet")
    return value


def _filled(template: str, credentials: Mapping[str, str]) -> str:
    return re.sub(r"{(\w+)}", lambda field: _required(credentials, field[1]), template)


def checked_credentials(spec: ConnectorSpec, credentials: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The method that the fields belong to, and the fields; raises InvalidCredentials naming each fault."""
    name = _method_of(spec, credentials)
    method = spec.authentication[name]
    faults = [
        _field_error(spec, method, field, "required")
        for field in method.required
        if credentials.get(field) in (None, "")
    ]
    unknown = (field for field in credentials if field not in method.credentials)
    faults += [_field_error(spec, method, field, "unknown") for field in islice(unknown, MAX_FAULTS)]
    given = {name: value for name, value in credentials.items() if name in method.credentials and value is not None}
    key = None if method.assertion is None else method.assertion.key
    faults += [
        _field_error(spec, method, field, "type")
        for field, value in given.items()
        if field != key and not is_header_text(value)
    ]
    if method.assertion is not None and given.get(method.assertion.key):
        faults += _key_faults(spec.kind, method.assertion, given[method.assertion.key])
    if faults:
        raise InvalidCredentials(None if credentials else _all_methods(spec), faults=faults)
    return name, {field: value for field, value in credentials.items() if value is not None}


def _key_faults(kind: str, assertion: Assertion, value: Any) -> list[FieldError]:
    """What is wrong with the text of a private key or a key file."""
    if not isinstance(value, str) or len(value) > MAX_KEY:
        return [bad_key(kind, assertion, f"{assertion.key} must be a text of at most {MAX_KEY} characters")]
    try:
        read_private_key(assertion, value)
    except BadKey as error:
        return [bad_key(kind, assertion, str(error))]
    return []


def bad_key(kind: str, assertion: Assertion, reason: str) -> FieldError:
    """The fault of a credential that is not the private key that an assertion needs."""
    return FieldError(f"/credentials/{assertion.key}", assertion.key, "format", f"{kind}: {reason}")


def _method_of(spec: ConnectorSpec, credentials: Mapping[str, Any]) -> str:
    """The method that has most of the given fields and lacks fewest of its own."""

    def fit(method: AuthMethod) -> tuple[int, int]:
        named = sum(field in method.credentials for field in credentials)
        missing = sum(field not in credentials for field in method.required)
        return named - missing, -missing

    return max(spec.authentication, key=lambda name: fit(spec.authentication[name]))


def _all_methods(spec: ConnectorSpec) -> str:
    """Every method with its fields, for an error message; optional fields are in brackets."""
    methods = (
        f"{name} ({', '.join(field if field in method.required else f'[{field}]' for field in method.credentials)})"
        for name, method in spec.authentication.items()
    )
    variables = [name for name, variable in spec.environment.items() if variable.required]
    required = f"; required variables: {', '.join(variables)}" if variables else ""
    return f"{spec.kind} needs the credentials of one method: {'; '.join(methods)}{required}"


def is_header_text(value: Any) -> bool:
    """Whether a value is printable text of at most 8192 characters, so that it cannot add another header."""
    return isinstance(value, str) and value.isprintable() and len(value) <= 8192


def shown_name(name: str) -> str:
    """The name of a credential for errors and logs; only the beginning of a text that is no name: it may be a key."""
    return name if re.fullmatch(r"[\w.:-]{1,100}", name) else f"{name[:20]}…"


def _field_error(spec: ConnectorSpec, method: AuthMethod, field: str, code: str) -> FieldError:
    credentials = method.credentials
    field = shown_name(field)
    match code:
        case "required":
            text = f"{field} is missing: {credentials[field].description}"
        case "unknown":
            text = f"{field} is not a credential of {method.title}; {did_you_mean(field, credentials)}"
        case _:
            text = f"{field} must be a string of printable characters"
    return FieldError(pointer=f"/credentials/{field}", field=field, code=code, message=f"{spec.kind}: {text}")
