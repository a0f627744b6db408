-- Sign-in to MCP servers: the apps that the gateway has registered, and the scopes that servers ask for later.

-- One app of an organization at each authorization server (RFC 7591).
CREATE TABLE oauth_registrations (
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    issuer text NOT NULL,
    client_id text NOT NULL,
    -- the redirect URI that is registered; another one needs another registration
    redirect_uri text NOT NULL,
    -- the scopes that its consents may request; others need another registration too
    scopes text[] NOT NULL,
    authentication text NOT NULL CHECK (authentication IN ('basic', 'body', 'none')),
    -- the client secret, which is empty for a public client, and when it expires
    key_id text NOT NULL,
    wrapped_key bytea NOT NULL,
    sealed bytea NOT NULL,
    expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, issuer)
);
CALL gateway_isolate('oauth_registrations');
GRANT SELECT, INSERT, UPDATE, DELETE ON oauth_registrations TO gateway_app;

-- The authorization server at which an app is registered; null if its kind is not an MCP server.
ALTER TABLE oauth_apps ADD COLUMN issuer text;

-- The scopes that the application asked for when it refused a call; the next consent requests them too.
ALTER TABLE connectors ADD COLUMN asked_scopes text[] NOT NULL DEFAULT '{}';
