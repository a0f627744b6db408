"""The secrets of a call, and an application's text without them: pure."""

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import islice
from urllib.parse import quote

from gateway.errors import UpstreamInvalidResponse
from gateway.foundation import payloads

MASK = "***"
#: a secret that a header names: `Authorization: Token token=abc`
_NAMED = re.compile(r'\w+="?([^"]+)"?')
#: characters; what is shorter is a common word rather than a secret
_SHORTEST = 4
#: characters of a secret's prefix that identify a truncated secret, and the shortest secret that is searched this way
_HEAD, _CUTTABLE = 16, 24
#: characters of a secret that is masked in headers and Meta too: a shorter one may be in a cursor by chance
_UNMISTAKABLE = 8
#: characters of a text times encodings of secrets that are searched for, 200 ms; a larger text is masked as a whole
_MAX_SEARCH = 1 << 29
#: sets of credentials whose encodings are kept
_REMEMBERED = 512
#: bytes of a request's body that are searched for secrets
_SEARCHED = 64 << 10
#: a member of a JSON body whose name says that it is a secret
_SECRET_MEMBER = re.compile(
    rb'(?:password|passwd|secret|private_?key|api_?key|access_?token|refresh_?token)"[ \t\r\n]*:[ \t\r\n]*'
    rb'("(?:[^"\\]|\\.)*")',
    re.IGNORECASE,
)
#: a private key in PEM, also one that is cut off
_PEM = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----([^-]*)")
#: what separates the lines of PEM: whitespace, also as it is escaped in JSON, or in JSON within JSON
_LINE_BREAK = re.compile(r"\\[nrt]|[\\\s]")
#: maximum lines of a private key that are masked one by one: the largest keys have a hundred
_KEY_LINES = 200
#: headers that name an address or a version: a part of them cannot be replaced
_ADDRESSES, _VALIDATORS = frozenset({"location"}), frozenset({"etag", "last-modified"})


class Secrets:
    """Tokens, passwords and keys to mask, in every encoding in which an application may echo them."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = frozenset(part for value in values if len(value) >= _SHORTEST for part in _parts_of(value))

    @classmethod
    def of_headers(cls, values: Iterable[str]) -> "Secrets":
        """Those of the values of headers that authenticate a request (RFC 6750, RFC 7617)."""
        return _of_headers(tuple(values))

    def __or__(self, other: "Secrets") -> "Secrets":
        return Secrets(self._values | other._values) if other._values else self

    def masked(self, text: str) -> str:
        """The text with each secret replaced, the cut-off beginning of a long one too."""
        if len(text) * len(self._forms) > _MAX_SEARCH:
            return MASK
        for form in self._forms:
            text = text.replace(form, MASK)
        for form in self._forms:
            if len(form) >= _CUTTABLE:
                text = _without_beginnings(text, form)
        return text

    def masked_value(self, text: str) -> str:
        """A value that the gateway uses, such as a cursor, with each whole secret of 8 or more characters replaced."""
        for form in self._unmistakable_forms:
            text = text.replace(form, MASK)
        return text

    def masked_headers(self, headers: dict[str, str]) -> dict[str, str]:
        """The headers, masked as values; `Location` stays, a validator (RFC 9110 §8.8) with a secret is left out."""
        text = "\n".join(headers.values())
        if not any(form in text for form in self._unmistakable_forms):
            return headers
        masked = {name: value if name in _ADDRESSES else self.masked_value(value) for name, value in headers.items()}
        return {name: value for name, value in masked.items() if name not in _VALIDATORS or value == headers[name]}

    @cached_property
    def _forms(self) -> list[str]:
        return _all_forms(self._values)

    @cached_property
    def _unmistakable_forms(self) -> list[str]:
        return _all_forms(value for value in self._values if len(value) >= _UNMISTAKABLE)


NO_SECRETS = Secrets()


@lru_cache(maxsize=_REMEMBERED)
def _of_headers(values: tuple[str, ...]) -> Secrets:
    return Secrets(secret for value in values for secret in _in_header(value))


def secrets_in_body(body: bytes) -> Iterator[str]:
    """The texts of members of a JSON body whose names say that they are secrets, in its first 64 KiB."""
    for found in _SECRET_MEMBER.finditer(body, 0, _SEARCHED):
        try:
            value = payloads.value(found[1])
        except UpstreamInvalidResponse:
            continue
        if len(value) >= _UNMISTAKABLE:
            yield value


def _all_forms(values: Iterable[str]) -> list[str]:
    """Longest first, so that no part is replaced before the whole."""
    return sorted({form for value in values for form in _forms_of(value)}, key=len, reverse=True)


def _in_header(value: str) -> Iterator[str]:
    scheme, _, rest = value.partition(" ")
    secret = rest.strip() or scheme
    yield secret
    named = _NAMED.fullmatch(secret)
    if named:
        yield named[1]
    if scheme.lower() == "basic":
        pair = _decoded(secret)
        user, _, password = pair.partition(":")
        yield from (pair, password)
        # Some applications take a key as the user, with a constant in place of the password.
        if len(password) < _SHORTEST:
            yield user


def _decoded(text: str) -> str:
    try:
        return b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _parts_of(value: str) -> Iterator[str]:
    """The value, and of a private key in PEM each line too: applications and people reformat it."""
    yield value
    if "PRIVATE KEY-----" in value:
        for key in _PEM.finditer(value):
            lines = (line for line in _LINE_BREAK.split(key[1]) if len(line) >= _UNMISTAKABLE)
            yield from islice(lines, _KEY_LINES)


def _forms_of(value: str) -> Iterator[str]:
    """The value itself, percent-encoded, escaped as in JSON, and in base64 at any place of what was encoded."""
    yield value
    yield quote(value, safe="", errors="replace")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    escaped = escaped.replace("\r", "\\r").replace("\n", "\\n")
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
