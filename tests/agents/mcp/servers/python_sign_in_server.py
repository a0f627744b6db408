"""A calculator that people sign in to, with mcp 2.x: `python_sign_in_server.py PORT AUTHENTICATION`.

Everybody who comes consents; each app that registers authenticates so, whatever it has asked for.
"""

import sys
import time
from secrets import token_hex
from typing import Any

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

AUTHENTICATION: Any = sys.argv[2]


class Provider:
    """Keeps clients, codes and tokens in memory."""

    def __init__(self) -> None:
        self._clients: dict[str, OAuthClientInformationFull] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._access: dict[str, AccessToken] = {}
        self._refresh: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        # The response to the registration is made of the same object afterwards.
        client_info.token_endpoint_auth_method = AUTHENTICATION
        client_info.client_secret = None if AUTHENTICATION == "none" else token_hex(32)
        self._clients[client_info.client_id or ""] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        members = params.model_dump(include={"code_challenge", "redirect_uri_provided_explicitly", "resource"})
        code = AuthorizationCode(
            code=token_hex(32),
            client_id=client.client_id or "",
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            redirect_uri=params.redirect_uri,
            **members,
        )
        self._codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, _: Any, code: str) -> AuthorizationCode | None:
        return self._codes.get(code)

    async def exchange_authorization_code(self, _: Any, code: AuthorizationCode) -> OAuthToken:
        del self._codes[code.code]
        return self._issued(code.client_id, code.scopes, code.resource)

    async def load_refresh_token(self, _: Any, token: str) -> RefreshToken | None:
        return self._refresh.get(token)

    async def exchange_refresh_token(self, _: Any, token: RefreshToken, scopes: list[str]) -> OAuthToken:
        del self._refresh[token.token]
        return self._issued(token.client_id, scopes, token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self._access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self._access.pop(token.token, None)
        self._refresh.pop(token.token, None)

    def _issued(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = token_hex(32), token_hex(32)
        members: dict[str, Any] = {"client_id": client_id, "scopes": scopes, "resource": resource}
        self._access[access] = AccessToken(token=access, **members)
        self._refresh[refresh] = RefreshToken(token=refresh, **members)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600, scope=" ".join(scopes))


AUTH = AuthSettings(
    issuer_url="https://auth.calculator.io",
    resource_server_url="https://mcp.calculator.io/mcp",
    required_scopes=["calculate"],
    validate_token_resource=True,
    client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["calculate"]),
    revocation_options=RevocationOptions(enabled=True),
)
server = MCPServer("calculator", auth=AUTH, auth_server_provider=Provider())


@server.tool()
def add(a: int, b: int = 0) -> int:
    """Adds two numbers."""
    return a + b


if __name__ == "__main__":
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
