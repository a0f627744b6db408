"""`gateway.hooks`: the URLs to which applications send their notices of changes."""

from gateway.client.connectors import Connectors
from gateway.client.paths import segment
from gateway.client.session import ApiRequest, Session
from gateway.contract.connectors import Connector
from gateway.contract.hooks import HookView


class Hooks:
    """The hooks of the workspace's connectors; a connector has at most one."""

    def __init__(self, session: Session, connectors: Connectors) -> None:
        self._session = session
        self._connectors = connectors

    async def create(self, connector: str | Connector, secret: str | None = None) -> HookView:
        """The connector's hook, created if there is none; its `url` is entered at the application.

        The application signs its notices with `secret`; the previous secret stays valid. If the application sends a
        secret itself, the hook accepts that secret for the next hour. Raises InvalidParams for a kind without notices.
        """
        body = {} if secret is None else {"secret": secret}
        call = ApiRequest(method="POST", path=await self._path(connector), body=body, is_read=True)
        return (await self._session.fetch(call)).into(HookView)

    async def get(self, connector: str | Connector) -> HookView:
        """The connector's hook; raises NotFound."""
        return (await self._session.fetch(ApiRequest(method="GET", path=await self._path(connector)))).into(HookView)

    async def delete(self, connector: str | Connector) -> None:
        """Delete the hook with its secrets; its URL accepts no more notices. Raises NotFound."""
        await self._session.fetch(ApiRequest(method="DELETE", path=await self._path(connector)))

    async def _path(self, connector: str | Connector) -> str:
        return f"/api/v1/integrations/connectors/{segment((await self._connectors.resolve(connector)).id)}/hook"
