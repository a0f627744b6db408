"""The URLs to which webhooks may be delivered. Pure; the transport checks the address again when it connects."""

import re
from collections.abc import Collection
from ipaddress import ip_address

from yarl import URL

from gateway.contract.events import MAX_URL
from gateway.errors import FieldError
from gateway.foundation.hosts import is_forbidden_host
from gateway.upstream.egress import is_public_address

#: characters that a URL has in percent-encoding only (RFC 3986 §2), and `%` without two hexadecimal digits
_UNENCODED = re.compile(r"""[ \\"<>^`{|}]|%(?![0-9A-Fa-f]{2})""")


def url_fault(url: str, allowed_origins: Collection[URL], field: str = "url") -> FieldError | None:
    """The fault of a receiver's URL: it must be https, or on an origin that the operator allows."""
    try:
        parsed = URL(url, encoded=True)
        host, port = parsed.raw_host, parsed.port  # yarl parses the port here
    except ValueError:
        return _fault(field, "format", "is not a URL")
    if len(url) > MAX_URL:
        return _fault(field, "length", f"must be at most {MAX_URL} characters")
    if not url.isascii() or not url.isprintable() or _UNENCODED.search(url):
        return _fault(field, "format", "must be ASCII; percent-encode all other characters")
    if not host or not port or parsed.scheme not in ("http", "https"):
        return _fault(field, "format", "must be an absolute https URL")
    if "#" in url or "@" in parsed.raw_authority:
        return _fault(field, "format", "must have no fragment, user or password")
    if parsed.origin() in allowed_origins:
        return None
    if parsed.scheme != "https":
        return _fault(field, "scheme", "must be https; the operator may allow others by GATEWAY_WEBHOOK_ORIGINS")
    if not _may_be_public(host):
        return _fault(field, "address", "must be a public address; the operator may allow others")
    return None


def _may_be_public(host: str) -> bool:
    host = host.removesuffix(".")
    try:
        ip_address(host)
    except ValueError:
        return not is_forbidden_host(host)
    return is_public_address(host)


def _fault(field: str, code: str, text: str) -> FieldError:
    return FieldError(f"/{field}", field, code, f"{field} {text}")
