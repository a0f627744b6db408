-- Connect links: a person makes one connector of a workspace, or authorizes one again, at an address that is good once.

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
    -- a link is good once
    completed_at timestamptz,
    connector_id uuid REFERENCES connectors ON DELETE SET NULL
);
CREATE INDEX connect_sessions_by_expiry ON connect_sessions (expires_at);

ALTER TABLE connect_sessions ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON connect_sessions USING (gateway_sees(organization_id));
GRANT SELECT, INSERT, UPDATE, DELETE ON connect_sessions TO gateway_app;
