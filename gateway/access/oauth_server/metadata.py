"""Metadata of the protected resource (RFC 9728) and of the authorization server (RFC 8414); pure."""

from typing import Any

import msgspec
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata

from gateway.contract.issuers import ID_JAG_PROFILE, JWT_BEARER, TOKEN_EXCHANGE
from gateway.contract.oauth import (
    AGENT_SCOPES,
    AUTHORIZE,
    REGISTER,
    RESOURCE_METADATA,
    REVOKE,
    TOKEN,
    ResourceMetadataView,
    ServerMetadataView,
)


def resource_metadata(issuer: str, path: str) -> ResourceMetadataView:
    """RFC 9728 §2 for the resource at a path such as `/mcp`."""
    return ResourceMetadataView(
        resource=f"{issuer}{path}",
        authorization_servers=[issuer],
        scopes_supported=list(AGENT_SCOPES),
        bearer_methods_supported=["header"],
        resource_name="Agent connector gateway",
    )


def server_metadata(issuer: str) -> ServerMetadataView:
    """RFC 8414 §2, with RFC 9207 and client id metadata documents.

    The registration endpoint is named even if it refuses every host: its refusal says which setting allows them.
    """
    document: dict[str, Any] = {
        "issuer": issuer,
        "authorization_endpoint": issuer + AUTHORIZE,
        "token_endpoint": issuer + TOKEN,
        "revocation_endpoint": issuer + REVOKE,
        "revocation_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": [
            "authorization_code",
            "refresh_token",
            "client_credentials",
            TOKEN_EXCHANGE,
            JWT_BEARER,
        ],
        "authorization_grant_profiles_supported": [ID_JAG_PROFILE],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "code_challenge_methods_supported": ["S256"],
        "scopes_supported": list(AGENT_SCOPES),
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
        "registration_endpoint": issuer + REGISTER,
        "service_documentation": f"{issuer}/docs/how-to/agents",
    }
    if issuer.startswith("https:"):
        AuthorizationServerMetadata(document).validate()
    return msgspec.convert(document, ServerMetadataView)


def challenge(issuer: str, path: str) -> str:
    """`WWW-Authenticate` for a resource (RFC 6750 §3, RFC 9728 §5.1)."""
    members = {"resource_metadata": f"{issuer}{RESOURCE_METADATA}{path}", "scope": " ".join(AGENT_SCOPES)}
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in members.items())
