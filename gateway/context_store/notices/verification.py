"""Whether an application signed a notice, with which secret, and when. Pure."""

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from datetime import datetime

from gateway.context_store.notices.notice import Notice
from gateway.kinds.notice_signatures import seconds_of, signature_of, signed_text
from gateway.kinds.notices import NoticeSignature, NoticeSpec, NoticeTimestamp

#: maximum signatures of one header that are compared
_MAX_SIGNATURES = 20


def delivery_digest(spec: NoticeSpec, notice: Notice, secrets: Sequence[str], now: datetime) -> bytes | None:
    """The key of a verified delivery: the SHA-256 of its id, or else of the signed text.

    None if none of the secrets signed the notice, or if its time differs from `now` by more than the tolerance.
    """
    delivery_id = notice.text_at(spec.delivery_id)
    values = {
        "body": notice.body,
        "method": _bytes(notice.method),
        "url": _bytes(notice.url),
        "timestamp": _bytes(_timestamp_text(spec.timestamp, notice)),
        "delivery_id": _bytes(delivery_id),
    }
    signed = signed_text(spec.signature, values)
    if not any(_is_signed(spec.signature, notice, signed, secret) for secret in secrets):
        return None
    if spec.timestamp is not None and not _is_current(spec.timestamp, notice, now):
        return None
    return hashlib.sha256(b"id " + _bytes(delivery_id) if delivery_id else b"signed " + signed).digest()


def _is_signed(signature: NoticeSignature, notice: Notice, signed: bytes, secret: str) -> bool:
    expected = signature_of(signature, signed, secret)
    items = list(_items(notice.headers.get(signature.header, ""), signature.separator, signature.prefix))
    return any(hmac.compare_digest(_bytes(item), expected) for item in items[:_MAX_SIGNATURES])


def _is_current(timestamp: NoticeTimestamp, notice: Notice, now: datetime) -> bool:
    try:
        seconds = seconds_of(timestamp, _timestamp_text(timestamp, notice))
        return abs(now.timestamp() - seconds) <= timestamp.tolerance
    except (ValueError, OverflowError):
        return False


def _timestamp_text(timestamp: NoticeTimestamp | None, notice: Notice) -> str:
    if timestamp is None:
        return ""
    return next(_items(notice.text_at(timestamp.path), timestamp.separator, timestamp.prefix), "")


def _items(text: str, separator: str | None, prefix: str) -> Iterator[str]:
    """The items of a header that begin with the prefix, which is removed."""
    items = [text] if separator is None else text.split(separator)
    return (item.strip().removeprefix(prefix) for item in items if item.strip().startswith(prefix))


def _bytes(text: str) -> bytes:
    """The bytes of a header, which aiohttp decodes as UTF-8 with surrogate escapes."""
    return text.encode(errors="surrogateescape")
