"""The redirect URLs of a client, to which the gateway may redirect browsers. Pure."""

import re
from collections.abc import Sequence

from yarl import URL

from gateway.errors import FieldError
from gateway.foundation.hosts import is_loopback

#: maximum redirect URLs of a client
MAX_URLS = 50
#: maximum characters of a redirect URL
MAX_LENGTH = 2000
#: host names and addresses. Hosts are part of `frame-ancestors` and `form-action`, where `*` matches every host.
HOST_NAME = re.compile(r"[A-Za-z0-9.-]+|[0-9A-Fa-f:.]+")


def redirect_error(url: str, allowed: Sequence[str], *, is_embedded: bool) -> FieldError | None:
    """The fault of a redirect_url. Valid are the client's own https URLs; embedded, any loopback (RFC 8252 §7.3)."""
    try:
        parsed = URL(url, encoded=True)
        host, port = parsed.host, parsed.port  # yarl parses the port here
    except ValueError:
        return _redirect_error("format", "is not a URL")
    if len(url) > MAX_LENGTH:
        return _redirect_error("length", f"must be at most {MAX_LENGTH} characters")
    if not url.isascii() or not url.isprintable() or any(each in url for each in ' \\"<>^`{|}'):
        return _redirect_error("format", "must be ASCII; percent-encode all other characters")
    if not host or not HOST_NAME.fullmatch(host) or not port or parsed.scheme not in ("http", "https"):
        return _redirect_error("format", "must be an absolute https URL")
    if "#" in url:
        return _redirect_error("fragment", "must have no fragment")
    if "@" in parsed.raw_authority:
        return _redirect_error("userinfo", "must have no user or password")
    if parsed.scheme == "http":
        if is_embedded and is_loopback(host):
            return None
        return _redirect_error("scheme", "must be https; http is allowed for loopback addresses in embedded mode only")
    if url not in allowed:
        hint = f"allowed: {', '.join(allowed)}" if allowed else "the client has none"
        return _redirect_error("not_allowed", f"must be exactly one of the client's redirect URLs; {hint}")
    return None


def redirect_errors(urls: Sequence[str], *, is_embedded: bool) -> list[FieldError]:
    """The faults in a client's new list of redirect URLs, each with its index."""
    faults = ((index, url, redirect_error(url, urls, is_embedded=is_embedded)) for index, url in enumerate(urls))
    return [
        FieldError(f"/redirect_urls/{index}", f"redirect_urls.{index}", fault.code, f"{url[:200]}: {fault.message}")
        for index, url, fault in faults
        if fault is not None
    ]


def _redirect_error(code: str, text: str) -> FieldError:
    return FieldError("/redirect_url", "redirect_url", code, f"redirect_url {text}")
