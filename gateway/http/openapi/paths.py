"""The paths that the tables of the OpenAPI document name."""

CONNECTORS = "/api/v1/integrations/connectors"
CONNECTOR = f"{CONNECTORS}/{{connector_id}}"
EXECUTE = f"{CONNECTOR}/execute"
DOWNLOAD = f"{CONNECTOR}/download/{{entity}}"
CONNECTOR_TYPES = "/api/v1/integrations/connector-types"
JOB = "/api/v1/jobs/{job_id}"
OAUTH_APPS = "/api/v1/oauth/credentials"
CONNECT_SESSIONS = "/api/v1/connect/sessions"
CONSENT, CALLBACK = f"{CONNECTORS}/oauth/consent", f"{CONNECTORS}/oauth/callback"
#: for known SDKs, and the endpoints of RFC 6749 and 7009
TOKENS = "/api/v1/account/applications/token"
TOKEN, REVOKE = "/oauth/token", "/oauth/revoke"
