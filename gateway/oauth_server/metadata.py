"""Metadata of the protected resource (RFC 9728) and of the authorization server (RFC 8414); pure."""

from typing import Any

from authlib.oauth2.rfc8414 import AuthorizationServerMetadata

from gateway.oauth_server.model import SCOPES

RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
SERVER_METADATA = "/.well-known/oauth-authorization-server"
AUTHORIZE, TOKEN, REVOKE, REGISTER = "/oauth/authorize", "/oauth/token", "/oauth/revoke", "/oauth/register"


def resource_metadata(issuer: str, path: str) -> dict[str, Any]:
    """RFC 9728 §2 for the resource at a path such as `/mcp`."""
    return {
        "resource": f"{issuer}{path}",
        "authorization_servers": [issuer],
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
        "resource_name": "Agent connector gateway",
    }


def server_metadata(issuer: str, *, registers: bool) -> dict[str, Any]:
    """RFC 8414 §2, with RFC 9207 and client id metadata documents."""
    document = {
        "issuer": issuer,
        "authorization_endpoint": issuer + AUTHORIZE,
        "token_endpoint": issuer + TOKEN,
        "revocation_endpoint": issuer + REVOKE,
        "revocation_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "code_challenge_methods_supported": ["S256"],
        "scopes_supported": list(SCOPES),
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
        **({"registration_endpoint": issuer + REGISTER} if registers else {}),
    }
    if issuer.startswith("https:"):
        AuthorizationServerMetadata(document).validate()
    return document


def challenge(issuer: str, path: str, *, scope: str | None = None, error: str | None = None) -> str:
    """`WWW-Authenticate` for a resource (RFC 6750 §3, RFC 9728 §5.1)."""
    members = {"resource_metadata": f"{issuer}{RESOURCE_METADATA}{path}", "scope": scope, "error": error}
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in members.items() if value is not None)
