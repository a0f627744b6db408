-- OAuth: the organizations' own apps, consents under way, and who is renewing a connector's tokens.

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
    -- a state is good once
    used_at timestamptz
);
CREATE INDEX oauth_flows_by_expiry ON oauth_flows (expires_at);

ALTER TABLE oauth_apps ENABLE ROW LEVEL SECURITY;
ALTER TABLE oauth_flows ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON oauth_apps USING (gateway_sees(organization_id));
CREATE POLICY tenant ON oauth_flows USING (gateway_sees(organization_id));
GRANT SELECT, INSERT, UPDATE, DELETE ON oauth_apps, oauth_flows TO gateway_app;

-- Who renews the tokens, and for how long without a sign of life.
ALTER TABLE connector_secrets ADD COLUMN refreshing_by uuid;
ALTER TABLE connector_secrets ADD COLUMN refreshing_until timestamptz;
-- Set before a token request is sent, cleared with its answer: still set later, an answer was lost, and with it
-- perhaps the refresh token that came in the place of the one we have.
ALTER TABLE connector_secrets ADD COLUMN refreshing_since timestamptz;

-- Who is renewing is no news to other processes; new credentials are.
DROP TRIGGER tell ON connector_secrets;
CREATE TRIGGER tell AFTER UPDATE OF sealed ON connector_secrets
    FOR EACH ROW EXECUTE FUNCTION gateway_tell_connector();
