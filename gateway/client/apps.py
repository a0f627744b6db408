"""The organization's own OAuth apps: consent screens show them instead of the platform's."""

from gateway.client.session import ApiRequest, Session
from gateway.contract.oauth import AppList, AppView

_PATH = "/api/v1/oauth/credentials"


class Apps:
    """Own OAuth apps, one for each kind at most."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def set(self, kind: str, client_id: str, client_secret: str) -> AppView:
        """Use this app for consents of the kind from now on."""
        body = {"connector_type": kind, "configuration": {"client_id": client_id, "client_secret": client_secret}}
        return (await self._session.fetch(ApiRequest("PUT", _PATH, body=body))).into(AppView)

    async def list(self) -> list[AppView]:
        """The apps that are set."""
        return (await self._session.fetch(ApiRequest("GET", _PATH))).into(AppList).data

    async def delete(self, kind: str) -> None:
        """Use the platform's app again."""
        await self._session.fetch(ApiRequest("DELETE", f"{_PATH}/connector_type/{kind}"))
