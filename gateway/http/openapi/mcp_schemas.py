"""Schemas and examples of the Model Context Protocol, and of how its hosts are let in."""

from gateway.http.openapi.parts import ID, Schema, array, flag, number, record, text

_RPC_EXAMPLE = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "content": [], "isError": False}}
_ISSUER = "https://gateway.example.com"

SCHEMAS: dict[str, Schema] = {
    "JsonRpcResponse": {
        "type": "object",
        "description": "JSON-RPC 2.0: `result`, or `error`; their members are those of the Model Context Protocol.",
        "required": ["jsonrpc"],
        "properties": {
            "jsonrpc": {"const": "2.0", "description": "always `2.0`"},
            "id": {"type": ["string", "integer", "null"], "description": "that of the request"},
            "result": {"type": "object", "description": "what the method answers", "additionalProperties": True},
            "error": {
                "type": "object",
                "description": "why it could not be served",
                "required": ["code", "message"],
                "properties": {
                    "code": number("of JSON-RPC 2.0, or of the protocol"),
                    "message": text("what is wrong"),
                    "data": {"description": "what helps to fix it"},
                },
            },
        },
        "examples": [_RPC_EXAMPLE],
    },
    "JsonRpcRequest": {
        "type": "object",
        "description": "A request of the Model Context Protocol; without `id` a notification.",
        "required": ["jsonrpc", "method"],
        "properties": {
            "jsonrpc": {"const": "2.0", "description": "always `2.0`"},
            "id": {"type": ["string", "integer"], "description": "comes back in the response"},
            "method": text("such as `tools/list`"),
            "params": {"type": "object", "description": "what the method takes", "additionalProperties": True},
        },
        "examples": [{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}],
    },
    "ResourceMetadata": record(
        {
            "resource": f"{_ISSUER}/mcp",
            "authorization_servers": [_ISSUER],
            "scopes_supported": ["read", "write"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Agent connector gateway",
        },
        resource=text("the resource", format="uri"),
        authorization_servers=array(text("an issuer"), "who gives tokens for it"),
        scopes_supported=array(text("a scope"), "what tokens may allow"),
        bearer_methods_supported=array(text("a method"), "how a token is sent"),
        resource_name=text("its name for people"),
    ),
    "ServerMetadata": record(
        {
            "issuer": _ISSUER,
            "authorization_endpoint": f"{_ISSUER}/oauth/authorize",
            "token_endpoint": f"{_ISSUER}/oauth/token",
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "code_challenge_methods_supported": ["S256"],
            "scopes_supported": ["read", "write"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
        },
        issuer=text("the server's identifier", format="uri"),
        authorization_endpoint=text("where a consent begins", format="uri"),
        token_endpoint=text("where tokens are got", format="uri"),
        registration_endpoint=text("where hosts register, if the operator allows it", format="uri"),
        response_types_supported=array(text("a type"), "RFC 8414 §2"),
        response_modes_supported=array(text("a mode"), "RFC 8414 §2"),
        grant_types_supported=array(text("a grant"), "RFC 8414 §2"),
        token_endpoint_auth_methods_supported=array(text("a method"), "RFC 8414 §2"),
        code_challenge_methods_supported=array(text("a method"), "RFC 7636"),
        scopes_supported=array(text("a scope"), "what tokens may allow"),
        authorization_response_iss_parameter_supported=flag("RFC 9207"),
        client_id_metadata_document_supported=flag("whether a client_id may be the URL of a metadata document"),
    ),
    "HostRegistration": {
        "type": "object",
        "description": "RFC 7591 §2; other members are left unread.",
        "required": ["redirect_uris"],
        "properties": {
            "redirect_uris": array(text("a URL"), "where the host is told the outcome"),
            "client_name": text("its name for people"),
        },
        "additionalProperties": True,
        "examples": [{"redirect_uris": ["http://127.0.0.1:33418/callback"], "client_name": "My agent"}],
    },
    "RegisteredHost": record(
        {
            "client_id": ID,
            "client_name": "My agent",
            "redirect_uris": ["http://127.0.0.1:33418/callback"],
            "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
        },
        client_id=text("the host's id"),
        client_name=text("its name"),
        redirect_uris=array(text("a URL"), "where it is told the outcome"),
        token_endpoint_auth_method=text("how it proves itself: it keeps no secret"),
        grant_types=array(text("a grant"), "what it may use"),
        response_types=array(text("a type"), "what it may use"),
    ),
}
