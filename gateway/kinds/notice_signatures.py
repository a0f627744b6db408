"""The signatures of applications' notices, as `webhooks` of a spec describes them. Pure."""

import base64
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from gateway.kinds.notices import NoticeSignature, NoticeSpec, NoticeTimestamp
from gateway.kinds.paging import HEADER_PATH

_NAME = re.compile(r"\{(\w+)\}")


def signed_text(signature: NoticeSignature, values: Mapping[str, bytes]) -> bytes:
    """The text that the application signs: `signed` of the spec with its names filled in."""
    parts = _NAME.split(signature.signed)
    return b"".join(values[part] if number % 2 else part.encode() for number, part in enumerate(parts))


def signature_of(signature: NoticeSignature, signed: bytes, secret: str) -> bytes:
    """The HMAC of a signed text, encoded as in the header, without the prefix."""
    digest = hmac.new(key_of(signature, secret), signed, signature.algorithm).digest()
    return digest.hex().encode() if signature.encoding == "hex" else base64.b64encode(digest)


def key_of(signature: NoticeSignature, secret: str) -> bytes:
    """The HMAC key in a secret, in the form that the application shows; raises ValueError for invalid Base64."""
    text = secret.removeprefix(signature.secret_prefix)
    if signature.secret_encoding == "text":
        return text.encode()
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:  # not Base64, or not ASCII
        prefix = f" after {signature.secret_prefix}" if signature.secret_prefix else ""
        raise ValueError(f"must be Base64{prefix}; copy all of it") from error


def seconds_of(timestamp: NoticeTimestamp, text: str) -> float:
    """The Unix time of a signed time; raises ValueError or OverflowError."""
    if timestamp.format == "iso8601":
        sent_at = datetime.fromisoformat(text)
        return (sent_at if sent_at.tzinfo else sent_at.replace(tzinfo=UTC)).timestamp()
    return int(text) / (1000 if timestamp.format == "unix_ms" else 1)


def time_text(timestamp: NoticeTimestamp, at: datetime) -> str:
    """A time as the application writes it; `at` is in UTC."""
    if timestamp.format == "iso8601":
        return at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return str(int(at.timestamp() * (1000 if timestamp.format == "unix_ms" else 1)))


def sign(
    spec: NoticeSpec, method: str, url: str, body: bytes, *, time: str, delivery_id: str, secret: str
) -> dict[str, str]:
    """The headers of a notice: its signature, and the time and the delivery id if the spec has them in headers."""
    values = {
        "body": body,
        "method": method.encode(),
        "url": url.encode(),
        "timestamp": time.encode(),
        "delivery_id": delivery_id.encode(),
    }
    signature = signature_of(spec.signature, signed_text(spec.signature, values), secret).decode()
    headers = {spec.signature.header: spec.signature.prefix + signature}
    if spec.timestamp is not None and spec.timestamp.path[0] == HEADER_PATH:
        name, item = ".".join(spec.timestamp.path[1:]), spec.timestamp.prefix + time
        # One header may hold both, as `t=1492774577,v1=5257a869`.
        headers[name] = (spec.timestamp.separator or ",").join([item, *([headers[name]] if name in headers else [])])
    if spec.delivery_id[:1] == (HEADER_PATH,):
        headers[".".join(spec.delivery_id[1:])] = delivery_id
    return headers
