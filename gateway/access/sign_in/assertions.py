"""Tokens of trusted issuers: ID tokens that clients exchange (RFC 8693), and ID-JAGs (RFC 7523). Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import msgspec
from joserfc import jws
from joserfc.errors import JoseError

from gateway.access.identity.people import SignInRefused
from gateway.access.sign_in.id_token import LEEWAY, decoded
from gateway.contract.issuers import ENTRA_CLAIM

#: `typ` of an ID-JAG; of an ID token it is absent or `JWT`, so that none is taken for the other
ID_JAG = "oauth-id-jag+jwt"
_OF_ID_TOKEN = (None, "JWT")
#: maximum seconds from `iat` to `exp` of an assertion
_MAX_LIFE = 3600
#: maximum characters of `sub` and `jti`
_MAX_NAME = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedAssertion:
    """What a token must say."""

    issuer: str
    audience: str
    #: the authenticated client, for an ID-JAG; None for an ID token
    client_id: str | None = None


def issuer_in(token: str) -> str:
    """The issuer that a token names, before its signature is verified; raises SignInRefused."""
    try:
        claims = msgspec.json.decode(jws.extract_compact(token.encode()).payload)
    except (JoseError, ValueError) as error:
        raise SignInRefused("the token is not a signed JWT") from error
    issuer = claims.get("iss") if isinstance(claims, dict) else None
    if not isinstance(issuer, str):
        raise SignInRefused("the token names no issuer (iss)")
    return issuer


def verified_assertion(
    token: str, keys: Sequence[Mapping[str, Any]], expected: ExpectedAssertion, now: float
) -> Mapping[str, Any]:
    """The claims of a valid token; raises SignInRefused, and UnknownKey."""
    header, claims = decoded(token, keys)
    fault = next(_faults(header, claims, expected, now), None)
    if fault is not None:
        raise SignInRefused(f"the token is not valid: {fault}")
    return claims


def subject_in(claims: Mapping[str, Any], issuer: str, claim: str) -> str:
    """The person's subject in the claim of a verified token; raises SignInRefused.

    `oid` is unique within the tenant of Microsoft Entra that the issuer names.
    """
    value = claims.get(claim)
    if not _is_name(value):
        raise SignInRefused(f"the token is not valid: {claim} is not 1 to {_MAX_NAME} printable characters")
    if claim == ENTRA_CLAIM and claims.get("tid") not in issuer.split("/"):
        raise SignInRefused("the token is not valid: tid is another tenant")
    return value


def _is_name(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= _MAX_NAME and value.isprintable()


def _faults(
    header: Mapping[str, Any], claims: Mapping[str, Any], expected: ExpectedAssertion, now: float
) -> Iterator[str]:
    is_assertion, audience = expected.client_id is not None, claims.get("aud")
    if not (header.get("typ") == ID_JAG if is_assertion else header.get("typ") in _OF_ID_TOKEN):
        yield f"typ must be {ID_JAG}" if is_assertion else "typ must be JWT"
    if claims.get("iss") != expected.issuer:
        yield "iss is another issuer"
    audiences = audience if isinstance(audience, list) else [audience]
    if expected.audience not in audiences or (is_assertion and len(audiences) != 1):
        yield "aud is not this gateway alone" if is_assertion else "aud is another audience"
    if not is_assertion and len(audiences) > 1 and claims.get("azp") != expected.audience:
        yield "azp is another audience"
    if is_assertion and claims.get("client_id") != expected.client_id:
        yield "client_id is another client"
    yield from _time_faults(claims, now, is_assertion=is_assertion)
    for name in ("sub", "jti") if is_assertion else ("sub",):
        if not _is_name(claims.get(name)):
            yield f"{name} is not 1 to {_MAX_NAME} printable characters"


def _time_faults(claims: Mapping[str, Any], now: float, *, is_assertion: bool) -> Iterator[str]:
    ends, begins, issued = claims.get("exp"), claims.get("nbf", 0), claims.get("iat")
    if not _is_time(ends) or not _is_time(begins) or not _is_time(issued):
        yield "exp and iat must be numbers"
        return
    if ends + LEEWAY <= now:
        yield "it has expired; the clocks of both sides may differ"
    if begins > now + LEEWAY or issued > now + LEEWAY:
        yield "it is not valid yet; the clocks of both sides may differ"
    if is_assertion and ends - issued > _MAX_LIFE:
        yield f"it is valid for more than {_MAX_LIFE} seconds"


def _is_time(value: Any) -> TypeGuard[float]:
    """Whether a value is a NumericDate (RFC 7519 §2) that PostgreSQL can store."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**33
