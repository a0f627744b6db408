"""Whether an application signed a notice, with which secret, and when. Pure."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from gateway.inbound_webhooks.notice import Notice
from gateway.kinds.spec import NoticeSignature, NoticeSpec, NoticeTimestamp

#: signatures of one header that are compared
_MAX_SIGNATURES = 20
_NAME = re.compile(r"\{(\w+)\}")


def delivery_digest(spec: NoticeSpec, notice: Notice, secrets: Sequence[str], now: datetime) -> bytes | None:
    """What names a verified delivery: the SHA-256 of the application's id for it, else of what it signed.

    None for a notice that none of the secrets signed, and for one whose time is further from `now` than the tolerance.
    """
    signed = _signed(spec, notice)
    if not any(_is_signed(spec.signature, notice, signed, secret) for secret in secrets):
        return None
    if spec.timestamp is not None and not _is_current(spec.timestamp, notice, now):
        return None
    delivery_id = notice.text_at(spec.delivery_id)
    return hashlib.sha256(b"id " + _bytes(delivery_id) if delivery_id else b"signed " + signed).digest()


def key_of(signature: NoticeSignature, secret: str) -> bytes:
    """The key of a secret as the application shows it; raises ValueError for one that is not Base64 as it should be."""
    text = secret.removeprefix(signature.secret_prefix)
    if signature.secret_encoding == "text":
        return text.encode()
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"is Base64{_after(signature.secret_prefix)}; copy it whole") from error


def _after(prefix: str) -> str:
    return f" after {prefix}" if prefix else ""


def _signed(spec: NoticeSpec, notice: Notice) -> bytes:
    """The text that the application signs: `signed` of the spec with its names filled in."""
    values = {
        "body": lambda: notice.body,
        "method": lambda: _bytes(notice.method),
        "url": lambda: _bytes(notice.url),
        "timestamp": lambda: _bytes(_timestamp_text(spec.timestamp, notice)),
        "delivery_id": lambda: _bytes(notice.text_at(spec.delivery_id)),
    }
    parts = _NAME.split(spec.signature.signed)
    return b"".join(values[part]() if number % 2 else part.encode() for number, part in enumerate(parts))


def _is_signed(signature: NoticeSignature, notice: Notice, signed: bytes, secret: str) -> bool:
    digest = hmac.new(key_of(signature, secret), signed, signature.algorithm).digest()
    expected = digest.hex().encode() if signature.encoding == "hex" else base64.b64encode(digest)
    items = list(_items(notice.headers.get(signature.header, ""), signature.separator, signature.prefix))
    return any(hmac.compare_digest(_bytes(item), expected) for item in items[:_MAX_SIGNATURES])


def _is_current(timestamp: NoticeTimestamp, notice: Notice, now: datetime) -> bool:
    text = _timestamp_text(timestamp, notice)
    try:
        if timestamp.format == "iso8601":
            sent_at = datetime.fromisoformat(text)
            seconds = (sent_at if sent_at.tzinfo else sent_at.replace(tzinfo=UTC)).timestamp()
        else:
            seconds = int(text) / (1000 if timestamp.format == "unix_ms" else 1)
        return abs(now.timestamp() - seconds) <= timestamp.tolerance
    except (ValueError, OverflowError):
        return False


def _timestamp_text(timestamp: NoticeTimestamp | None, notice: Notice) -> str:
    if timestamp is None:
        return ""
    return next(_items(notice.text_at(timestamp.path), timestamp.separator, timestamp.prefix), "")


def _items(text: str, separator: str | None, prefix: str) -> Iterator[str]:
    """The items of a header that begin with a prefix, without it."""
    items = [text] if separator is None else text.split(separator)
    return (item.strip().removeprefix(prefix) for item in items if item.strip().startswith(prefix))


def _bytes(text: str) -> bytes:
    """The bytes of a header, of which aiohttp makes text in UTF-8, whatever they are."""
    return text.encode(errors="surrogateescape")
