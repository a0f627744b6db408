"""The challenge of a response without enough authorization (RFC 6750 §3, RFC 9728 §5.1). Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: a param of a challenge, or the name of a scheme (RFC 9110 §11)
_TOKEN = r"[\w!#$%&'*+.^`|~-]++"
_CHALLENGE = re.compile(
    rf"(?P<name>{_TOKEN})\s*+=\s*+(?:\"(?P<quoted>(?:[^\"\\]|\\.)*+)\"|(?P<bare>[^\s,\"]*+))|(?P<scheme>{_TOKEN})"
)
#: RFC 6749 §3.3, without the comma, with which some applications separate scopes
_SCOPE = re.compile(r"[!#-+\--\[\]-~]{1,200}")
#: characters of a challenge that are read, and maximum scopes
_MAX_CHALLENGE, MAX_SCOPES = 8_000, 100


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a `WWW-Authenticate: Bearer` says (RFC 6750 §3, RFC 9728 §5.1)."""

    resource_metadata: str | None = None
    scopes: tuple[str, ...] = ()
    error: str | None = None


def challenge_in(headers: Mapping[str, str]) -> Challenge:
    """The challenge of the scheme Bearer; an empty one if the response has none.

    Of several (RFC 9110 §11.6.1), it is the first that names the metadata of the resource, else the first.
    """
    challenges: list[dict[str, str]] = []
    members: dict[str, str] = {}
    for found in _CHALLENGE.finditer(headers.get("www-authenticate", "")[:_MAX_CHALLENGE]):
        if found["scheme"] is not None:
            members = {}
            if found["scheme"].lower() == "bearer":
                challenges.append(members)
        else:
            quoted = found["quoted"]
            value = found["bare"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            members.setdefault(found["name"].lower(), value)
    members = next((each for each in challenges if "resource_metadata" in each), challenges[0] if challenges else {})
    return Challenge(
        resource_metadata=members.get("resource_metadata"),
        scopes=scopes_in(members.get("scope", "").split(" ")),
        error=members.get("error"),
    )


def scopes_in(names: Iterable[str]) -> tuple[str, ...]:
    """The different names that are scopes, at most `MAX_SCOPES`."""
    return tuple(dict.fromkeys(name for name in names if _SCOPE.fullmatch(name)))[:MAX_SCOPES]
