"""Reads the credentials of a call, where the authentication methods of a spec place them."""

import re

from gateway.kinds.authentication import AuthMethod
from gateway.sandbox.calls import Call, decoded_basic


def presented(method: AuthMethod, call: Call) -> list[str]:
    """The values of a method's credentials in a call; empty if the call does not use the method."""
    scheme, _, value = call.headers.get("authorization", "").partition(" ")
    if method.scheme == "bearer":
        return [value.strip()] if scheme.lower() == "bearer" else []
    if method.scheme == "basic":
        if scheme.lower() != "basic":
            return []
        username, _, password = decoded_basic(value)
        pairs: list[tuple[str, str | None]] = [(method.username or "", username), (method.password or "", password)]
    else:
        pairs = [(template, call.headers.get(name.lower())) for name, template in method.headers.items()]
        pairs += [(template, call.query.get(name)) for name, template in method.query.items()]
        pairs = [(template, text) for template, text in pairs if text is not None or not method.optional_in(template)]
    # A key has no space: `Authorization: {api_key}` does not match `Bearer token`.
    return _values(pairs, "(.*)" if method.scheme == "basic" else r"(\S*)")


def _values(pairs: list[tuple[str, str | None]], value: str) -> list[str]:
    """The texts in the places of `{field}`; empty if one of the texts does not match its template."""
    found: list[str] = []
    for template, text in pairs:
        pattern = value.join(re.escape(part) for part in re.split(r"{\w+}", template))
        match = None if text is None else re.fullmatch(pattern, text)
        if match is None:
            return []
        found += match.groups()
    return found
