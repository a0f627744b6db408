"""The secrets of a call, and an application's text without them: pure."""

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from urllib.parse import quote

MASK = "***"
#: a secret that a header names: `Authorization: Token token=abc`
_NAMED = re.compile(r'\w+="?([^"]+)"?')
#: characters; what is shorter is a common word rather than a secret
_SHORTEST = 4
#: characters of a secret's prefix that identify a truncated secret, and the shortest secret that is searched this way
_HEAD, _CUTTABLE = 16, 24


class Secrets:
    """Tokens, passwords and keys to mask, in every encoding in which an application may echo them."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = frozenset(value for value in values if len(value) >= _SHORTEST)

    @classmethod
    def of_headers(cls, headers: Mapping[str, str]) -> "Secrets":
        """Those of the headers that authenticate a request (RFC 6750, RFC 7617)."""
        return cls(secret for value in headers.values() for secret in _in_header(value))

    def __or__(self, other: "Secrets") -> "Secrets":
        return Secrets(self._values | other._values)

    def masked(self, text: str) -> str:
        """The text with each secret replaced, the cut-off beginning of a long one too."""
        for form in self._forms:
            text = text.replace(form, MASK)
        for form in self._forms:
            if len(form) >= _CUTTABLE:
                text = _without_beginnings(text, form)
        return text

    @cached_property
    def _forms(self) -> list[str]:
        """Longest first, so that no part is replaced before the whole."""
        return sorted({form for value in self._values for form in _forms_of(value)}, key=len, reverse=True)


def _in_header(value: str) -> Iterator[str]:
    scheme, _, rest = value.partition(" ")
    secret = rest.strip() or scheme
    yield secret
    named = _NAMED.fullmatch(secret)
    if named:
        yield named[1]
    if scheme.lower() == "basic":
        pair = _decoded(secret)
        yield pair
        yield pair.partition(":")[2]


def _decoded(text: str) -> str:
    try:
        return b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _forms_of(value: str) -> Iterator[str]:
    """The value itself, percent-encoded, escaped as in JSON, and in base64 at any place of what was encoded."""
    yield value
    yield quote(value, safe="", errors="replace")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    yield from (escaped, escaped.replace("/", "\\/"))
    padded = b64encode(value.encode(errors="surrogatepass")).decode()
    yield from (padded, padded.rstrip("="), padded.replace("+", "-").replace("/", "_"))
    for offset in range(3):
        encoded = b64encode(b"\0" * offset + value.encode(errors="surrogatepass")).decode().rstrip("=")
        # The characters at both ends depend on what stands beside the value.
        inner = encoded[(offset * 8 + 5) // 6 : len(encoded) - 1]
        if len(inner) >= 2 * _SHORTEST:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")


def _without_beginnings(text: str, secret: str) -> str:
    head, kept, end = secret[:_HEAD], [], 0
    while (start := text.find(head, end)) >= 0:
        kept.append(text[end:start])
        end = start + len(head)
        while end < len(text) and end - start < len(secret) and text[end] == secret[end - start]:
            end += 1
    return MASK.join([*kept, text[end:]])
