-- An organization that is moved to another database: since when its writes are refused and its jobs stay in the queue.
-- The job that exports it, if a caller asked for that, runs nevertheless.
ALTER TABLE organizations ADD COLUMN moving_since timestamptz, ADD COLUMN moving_job uuid;
CREATE INDEX organizations_moving ON organizations (id) WHERE moving_since IS NOT NULL;

-- Credentials that change after they were exported would be lost: an application may accept a refresh token only once.
CREATE FUNCTION gateway_keep_credentials() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM organizations WHERE id = NEW.organization_id AND moving_since IS NOT NULL) THEN
        RAISE lock_not_available USING MESSAGE = 'the organization is being moved';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER keep BEFORE INSERT OR UPDATE OF sealed, refreshing_since ON connector_secrets
    FOR EACH ROW EXECUTE FUNCTION gateway_keep_credentials();

-- The keys with which the gateways of an organization's earlier databases signed its audit log.
CREATE TABLE audit_former_keys (
    organization_id uuid NOT NULL,
    key_id text NOT NULL,
    -- base64
    public_key text NOT NULL,
    PRIMARY KEY (organization_id, key_id)
);
CALL gateway_isolate('audit_former_keys');
GRANT SELECT, INSERT ON audit_former_keys TO gateway_app;
