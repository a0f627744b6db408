"""Private keys in credentials: the PEM and the members of a key file, or what is wrong with them. Pure."""

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.errors import UpstreamInvalidResponse
from gateway.foundation import payloads
from gateway.kinds.authentication import Assertion

#: maximum characters of a credential that is a private key or a key file
MAX_KEY = 32_768
_BEGIN = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----")
#: the labels of unencrypted keys that may be RSA keys (RFC 7468 §10, PKCS #1)
_LABELS = frozenset({"PRIVATE KEY", "RSA PRIVATE KEY"})
#: bytes of a line of PEM
_LINE = 48


class BadKey(ValueError):
    """A private key that cannot be used; the message says why and repeats no part of the key."""


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A private key as PEM, and the other texts of the key file that it comes from."""

    pem: str = field(repr=False)
    members: Mapping[str, str] = field(default_factory=dict, repr=False)


def read_private_key(assertion: Assertion, text: str) -> PrivateKey:
    """The private key in the credential of an assertion; raises BadKey."""
    name, member = assertion.key, assertion.key_member
    if member is None:
        return PrivateKey(_pem(name, text))
    members = _members(name, text)
    if member not in members:
        raise BadKey(f"{name} has no {member}: give the whole text of the key file")
    pem = _pem(f"{member} of {name}", members.pop(member))
    return PrivateKey(pem, members)


def _members(name: str, text: str) -> dict[str, str]:
    """The texts in a key file."""
    text = text.strip().removeprefix("\ufeff")
    if text.startswith("-----BEGIN"):
        raise BadKey(f"{name} is PEM: give the whole text of the key file, which is JSON")
    try:
        document = payloads.value(text.encode())
    except (UpstreamInvalidResponse, UnicodeEncodeError):
        raise BadKey(f"{name} is not valid JSON: give the whole text of the key file") from None
    if not isinstance(document, dict):
        raise BadKey(f"{name} is JSON, but not an object: give the whole text of the key file")
    return {member: value for member, value in document.items() if isinstance(value, str) and value}


def _pem(name: str, text: str) -> str:
    """The PEM of a private key, with line breaks where they were lost or are written as `\\n`."""
    begin = _BEGIN.search(text)
    end = text.find(f"-----END {begin[1]}-----", begin.end()) if begin else -1
    if begin is None or end < 0:
        raise BadKey(
            f"{name} is not PEM: it must begin with -----BEGIN PRIVATE KEY----- and end with -----END PRIVATE KEY-----"
        )
    label, body = begin[1], text[begin.end() : end]
    if "ENCRYPTED" in label or "ENCRYPTED" in body:
        raise BadKey(
            f"{name} is encrypted with a passphrase: decrypt it first, as with openssl pkey -in key.pem -out new.pem"
        )
    if label not in _LABELS:
        raise BadKey(f"{name} is PEM of a different kind ({label}): give a PRIVATE KEY or an RSA PRIVATE KEY")
    try:
        content = b64decode(re.sub(r"\\[nr]|[\\\s]", "", body), validate=True)
    except (binascii.Error, ValueError):
        raise BadKey(f"{name} is damaged: what is between its first and last line is not base64") from None
    lines = [b64encode(content[at : at + _LINE]).decode() for at in range(0, len(content), _LINE)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])
