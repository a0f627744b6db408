-- Policies in Cedar, with their versions; and where a job was accepted, because policies may depend on it.

CREATE TABLE policies (
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name text NOT NULL,
    version integer NOT NULL,
    mode text NOT NULL CHECK (mode IN ('enforce', 'shadow')),
    cedar text NOT NULL,
    description text,
    -- the `@id`s of its statements, which no two current policies share
    ids text[] NOT NULL,
    -- false for earlier versions, and for the last one of a deleted policy
    is_current boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- the client that stored it
    created_by uuid,
    PRIMARY KEY (organization_id, name, version)
);
CREATE UNIQUE INDEX policies_current ON policies (organization_id, name) WHERE is_current;

CALL gateway_isolate('policies');
GRANT SELECT, INSERT, UPDATE, DELETE ON policies TO gateway_app;

-- Every process caches the current policies of an organization.
CREATE FUNCTION gateway_tell_policy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('gateway', 'policy:' || COALESCE(NEW.organization_id, OLD.organization_id));
    RETURN NULL;
END $$;
CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON policies
    FOR EACH ROW EXECUTE FUNCTION gateway_tell_policy();

ALTER TABLE jobs ADD COLUMN surface text NOT NULL DEFAULT 'http';
