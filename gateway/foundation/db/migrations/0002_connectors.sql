-- Connectors, and in a table of their own the secrets that they need.

CREATE TABLE connectors (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    kind text NOT NULL,
    name text NOT NULL,
    status text NOT NULL CHECK (status IN ('pending', 'active', 'needs_reauth', 'disabled')),
    status_reason text,
    auth_method text,
    environment jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- set when deletion began: from then on callers do not see the connector
    deleted_at timestamptz,
    -- the job that removes it; one that ended without having done so is replaced
    deletion_job uuid
);
CREATE INDEX connectors_by_organization ON connectors (organization_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX connectors_by_workspace ON connectors (workspace_id);
CREATE INDEX connectors_deleted ON connectors (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE connector_secrets (
    connector_id uuid PRIMARY KEY REFERENCES connectors ON DELETE CASCADE,
    organization_id uuid NOT NULL,
    -- the key that wraps the row's data key; rotation wraps it again
    key_id text NOT NULL,
    wrapped_key bytea NOT NULL,
    sealed bytea NOT NULL,
    -- when the access token in it expires; null if it does not, or if that is not known
    expires_at timestamptz,
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- the process that renews the tokens, and the end of its lease
    refreshing_by uuid,
    refreshing_until timestamptz,
    -- Set before a token request is sent, cleared with its response. If it is still set later, a response was lost, and
    -- with it perhaps the refresh token that replaced ours.
    refreshing_since timestamptz
);

CALL gateway_isolate('connectors');
CALL gateway_isolate('connector_secrets');
GRANT SELECT, INSERT, UPDATE, DELETE ON connectors, connector_secrets TO gateway_app;

CREATE FUNCTION gateway_tell_connector() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'connectors' THEN
        PERFORM pg_notify('gateway', 'connector:' || COALESCE(NEW.id, OLD.id));
    ELSE
        PERFORM pg_notify('gateway', 'connector:' || COALESCE(NEW.connector_id, OLD.connector_id));
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER tell AFTER UPDATE OR DELETE ON connectors FOR EACH ROW EXECUTE FUNCTION gateway_tell_connector();
-- A lease on the renewal concerns no other process; new credentials do.
CREATE TRIGGER tell AFTER UPDATE OF sealed ON connector_secrets
    FOR EACH ROW EXECUTE FUNCTION gateway_tell_connector();
