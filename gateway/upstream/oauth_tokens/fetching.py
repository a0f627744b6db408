"""Requests to authorization servers for what is no token: metadata and registrations."""

import aiohttp
from yarl import URL

from gateway.errors import UpstreamInvalidResponse
from gateway.upstream.egress import EgressPolicy, bounded_response, is_forbidden

#: maximum bytes of a document, and seconds for it
_MAX_BYTES, _TIMEOUT = 256 << 10, 10.0
_JSON = "application/json"


async def document_at(policy: EgressPolicy, url: URL, body: bytes | None = None) -> tuple[int, bytes]:
    """The status and the body of a GET, or of a POST of this body: bounded, without redirects.

    Raises UpstreamInvalidResponse with a reason that does not name the URL.
    """
    headers = {"Accept": _JSON} if body is None else {"Accept": _JSON, "Content-Type": _JSON}
    method = "GET" if body is None else "POST"
    try:
        status, found = await bounded_response(
            policy, method, url, headers, body, timeout=_TIMEOUT, max_bytes=_MAX_BYTES
        )
    except TimeoutError as error:
        raise UpstreamInvalidResponse(f"it has not answered within {_TIMEOUT:.0f} seconds") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        reason = "its address is not allowed" if is_forbidden(error) else type(error).__name__
        raise UpstreamInvalidResponse(f"it cannot be reached: {reason}") from error
    if len(found) > _MAX_BYTES:
        raise UpstreamInvalidResponse(f"it is larger than {_MAX_BYTES >> 10} KiB")
    return status, found
