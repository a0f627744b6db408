"""Cross-origin requests (Fetch §3.2): pages of agents' hosts call /mcp and the endpoints of OAuth from a browser.

Metadata is for pages of any origin, the rest for the origins of GATEWAY_MCP_ORIGINS. No response accepts cookies.
"""

import re
from collections.abc import Mapping

from gateway.contract.oauth import REGISTER, RESOURCE_METADATA, REVOKE, SERVER_METADATA, TOKEN

_ENDPOINTS = frozenset({"/mcp", TOKEN, REVOKE, REGISTER})
_METADATA = (RESOURCE_METADATA, SERVER_METADATA)
#: response headers that a page may read
_EXPOSED = "WWW-Authenticate, Retry-After, X-Request-Id"
#: seconds for which a browser may cache the response to a preflight request
_MAX_AGE = "600"
_HEADER_NAMES = re.compile(r"[A-Za-z0-9, -]{1,1000}")


def shared_headers(path: str, origin: str, origins: frozenset[str]) -> Mapping[str, str]:
    """The headers with which a page of `origin` may read the response; none if it may not."""
    if path.startswith(_METADATA):
        return {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": _EXPOSED}
    if path not in _ENDPOINTS and not path.startswith("/mcp/"):
        return {}
    allowed = {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": _EXPOSED}
    return {"Vary": "Origin", **(allowed if origin in origins else {})}


def preflight_headers(path: str, request_headers: Mapping[str, str], origins: frozenset[str]) -> Mapping[str, str]:
    """The headers of the response to a preflight request; none if the page may not send its request."""
    shared = shared_headers(path, request_headers.get("Origin", ""), origins)
    method = request_headers.get("Access-Control-Request-Method")
    names = request_headers.get("Access-Control-Request-Headers", "")
    if method is None or "Access-Control-Allow-Origin" not in shared:
        return {}
    return {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Max-Age": _MAX_AGE,
        **({"Access-Control-Allow-Headers": names} if _HEADER_NAMES.fullmatch(names) else {}),
    }
