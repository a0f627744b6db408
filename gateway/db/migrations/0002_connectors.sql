-- Connectors, and beside them what must be kept secret.

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
    -- set when deletion began: from then on it does not exist for callers
    deleted_at timestamptz
);
CREATE INDEX connectors_by_organization ON connectors (organization_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX connectors_by_workspace ON connectors (workspace_id);

CREATE TABLE connector_secrets (
    connector_id uuid PRIMARY KEY REFERENCES connectors ON DELETE CASCADE,
    organization_id uuid NOT NULL,
    -- the key that wraps the row's data key; rotation re-wraps
    key_id text NOT NULL,
    wrapped_key bytea NOT NULL,
    sealed bytea NOT NULL,
    -- when the access token in it ends; null where it does not or nobody knows
    expires_at timestamptz,
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now()
);

ALTER TABLE connectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE connector_secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON connectors USING (gateway_sees(organization_id));
CREATE POLICY tenant ON connector_secrets USING (gateway_sees(organization_id));
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
CREATE TRIGGER tell AFTER UPDATE ON connector_secrets FOR EACH ROW EXECUTE FUNCTION gateway_tell_connector();
