"""The organization's own OAuth apps, used for consent instead of the platform's."""

from gateway.client.paths import segment
from gateway.client.session import ApiRequest, Session
from gateway.contract.oauth import AppList, AppView

_PATH = "/api/v1/oauth/credentials"


class Apps:
    """The organization's own OAuth apps, at most one for each kind."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def set(self, kind: str, client_id: str, client_secret: str) -> AppView:
        """Use this OAuth app for consent at applications of the kind."""
        body = {"connector_type": kind, "configuration": {"client_id": client_id, "client_secret": client_secret}}
        return (await self._session.fetch(ApiRequest(method="PUT", path=_PATH, body=body))).into(AppView)

    async def list(self) -> list[AppView]:
        """The organization's own apps."""
        return (await self._session.fetch(ApiRequest(method="GET", path=_PATH))).into(AppList).data

    async def delete(self, kind: str) -> None:
        """Delete the app, if any; consent uses the platform's app again."""
        await self._session.fetch(ApiRequest(method="DELETE", path=f"{_PATH}/connector_type/{segment(kind)}"))
