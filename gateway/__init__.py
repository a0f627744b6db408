"""One gateway between software agents and business applications.

In your own process, with your own credentials:

    from gateway import connect

    async with connect("support-desk", {"subdomain": "acme", "email": "a@acme.com", "api_token": "…"}) as desk:
        page = await desk.execute("tickets", "list", {"per_page": 2})

`connect_sync` is the same without `async`.

Against a gateway that runs elsewhere: `gateway.client.Gateway`.
"""

from typing import TYPE_CHECKING, Any

from gateway import errors
from gateway.errors import GatewayError

if TYPE_CHECKING:
    from gateway.in_process import LocalConnector, Page, SyncLocalConnector, connect, connect_sync

__all__ = ["GatewayError", "LocalConnector", "Page", "SyncLocalConnector", "connect", "connect_sync", "errors"]


def __getattr__(name: str) -> Any:
    """The engine is loaded when it is first used, so that `import gateway` costs nothing."""
    if name in __all__:
        from gateway import in_process

        return getattr(in_process, name)
    raise AttributeError(f"module 'gateway' has no attribute {name!r}")
