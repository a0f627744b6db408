-- The authorization server for agents' hosts: hosts, grants, and the codes and refresh tokens of each grant.

-- Hosts that registered themselves (RFC 7591); those that bring a metadata document have no row.
CREATE TABLE agent_hosts (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    redirect_uris text[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE agent_grants (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    -- the gateway's client who signed in
    client_id uuid NOT NULL REFERENCES clients ON DELETE CASCADE,
    host_id text NOT NULL,
    host_name text NOT NULL,
    scopes text[] NOT NULL,
    -- names of the only workspaces; null is all
    workspaces text[],
    resource text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organization_id, id)
);

CREATE TABLE agent_codes (
    hash bytea PRIMARY KEY,
    organization_id uuid NOT NULL,
    grant_id uuid NOT NULL,
    redirect_uri text NOT NULL,
    challenge text NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    FOREIGN KEY (organization_id, grant_id) REFERENCES agent_grants (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX agent_codes_by_grant ON agent_codes (grant_id);

-- Used ones are kept as long as their grant: one that comes again shows that two hold it.
CREATE TABLE agent_refresh_tokens (
    hash bytea PRIMARY KEY,
    organization_id uuid NOT NULL,
    grant_id uuid NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    FOREIGN KEY (organization_id, grant_id) REFERENCES agent_grants (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX agent_refresh_tokens_by_grant ON agent_refresh_tokens (grant_id);

ALTER TABLE tokens ADD COLUMN grant_id uuid REFERENCES agent_grants ON DELETE CASCADE;
CREATE INDEX tokens_by_grant ON tokens (grant_id) WHERE grant_id IS NOT NULL;

-- Pruning.
CREATE INDEX agent_codes_by_expiry ON agent_codes (expires_at);
CREATE INDEX agent_refresh_tokens_by_expiry ON agent_refresh_tokens (expires_at);
CREATE INDEX agent_grants_by_creation ON agent_grants (created_at);
CREATE INDEX agent_grants_by_host ON agent_grants (host_id);
CREATE INDEX agent_hosts_by_creation ON agent_hosts (created_at);

CALL gateway_isolate('agent_grants');
CALL gateway_isolate('agent_codes');
CALL gateway_isolate('agent_refresh_tokens');
GRANT SELECT, INSERT, UPDATE, DELETE ON agent_hosts, agent_grants, agent_codes, agent_refresh_tokens TO gateway_app;
