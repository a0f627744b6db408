-- Consent at applications: the organizations' own OAuth apps, flows, and connect links.

CREATE TABLE oauth_apps (
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    kind text NOT NULL,
    client_id text NOT NULL,
    -- the client secret
    key_id text NOT NULL,
    wrapped_key bytea NOT NULL,
    sealed bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, kind)
);

CREATE TABLE oauth_flows (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    client_id uuid NOT NULL REFERENCES clients ON DELETE CASCADE,
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    kind text NOT NULL,
    name text,
    redirect_url text NOT NULL,
    environment jsonb NOT NULL DEFAULT '{}',
    -- SHA-256; the state itself is only in the consent address
    state_hash bytea NOT NULL UNIQUE,
    -- the app that the user consents to, and the PKCE verifier
    app_client_id text NOT NULL,
    key_id text NOT NULL,
    wrapped_key bytea NOT NULL,
    sealed bytea NOT NULL,
    -- the connector that is authorized again, in place
    reauthorizes uuid REFERENCES connectors ON DELETE CASCADE,

    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'completed', 'failed')),
    error text,
    error_description text,
    connector_id uuid REFERENCES connectors ON DELETE SET NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    -- a state is accepted once
    used_at timestamptz,
    -- SHA-256 of the cookie of the browser that went to the application
    browser_hash bytea
);
CREATE INDEX oauth_flows_by_expiry ON oauth_flows (expires_at);

GRANT SELECT, INSERT, UPDATE, DELETE ON oauth_apps, oauth_flows TO gateway_app;

-- Connect links: a person creates one connector of a workspace, or authorizes one again, at an address that works once.
CREATE TABLE connect_sessions (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    client_id uuid NOT NULL REFERENCES clients ON DELETE CASCADE,
    workspace_name text NOT NULL,
    -- the kinds to choose from
    kinds text[] NOT NULL,
    redirect_url text,
    -- the connector that is authorized again, in place
    reauthorizes uuid REFERENCES connectors ON DELETE CASCADE,
    -- SHA-256; the token itself is only in the link
    token_hash bytea NOT NULL UNIQUE,
    -- the consent under way, of which there is one at a time
    flow_id uuid REFERENCES oauth_flows ON DELETE SET NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    -- a link works once
    completed_at timestamptz,
    connector_id uuid REFERENCES connectors ON DELETE SET NULL
);
CREATE INDEX connect_sessions_by_expiry ON connect_sessions (expires_at);

CALL gateway_isolate('oauth_apps');
CALL gateway_isolate('oauth_flows');
CALL gateway_isolate('connect_sessions');
GRANT SELECT, INSERT, UPDATE, DELETE ON connect_sessions TO gateway_app;
