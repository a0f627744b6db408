-- Whose account a connector is decides who sees its jobs, events and schedules. They have the owner themselves, because
-- they outlive the connector.

ALTER TABLE jobs ADD COLUMN owner_id uuid;
ALTER TABLE events ADD COLUMN owner_id uuid;
ALTER TABLE schedules ADD COLUMN owner_id uuid;
-- the person whose webhook, consent or link it is; null for one of a program
ALTER TABLE webhooks ADD COLUMN owner_id uuid;
ALTER TABLE oauth_flows ADD COLUMN owner_id uuid;
ALTER TABLE connect_sessions ADD COLUMN owner_id uuid;

-- A caller's connectors are the shared ones and its own, among thousands of other people's. A column without nulls lets an
-- index serve both with any statistics; an OR does not, and row-level security keeps indexes on expressions out of use.
ALTER TABLE connectors ADD COLUMN owner_key uuid NOT NULL
    GENERATED ALWAYS AS (COALESCE(owner_id, '00000000-0000-0000-0000-000000000000'::uuid)) STORED;
CREATE INDEX connectors_usable ON connectors (organization_id, owner_key) WHERE deleted_at IS NULL;
CREATE INDEX connectors_usable_in_workspace ON connectors (workspace_id, owner_key) WHERE deleted_at IS NULL;

CREATE FUNCTION gateway_set_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.owner_id := (SELECT owner_id FROM connectors WHERE id = NEW.connector_id);
    RETURN NEW;
END
$$;
-- The administrator who deletes a person's connector follows the job.
CREATE TRIGGER set_owner BEFORE INSERT ON jobs
    FOR EACH ROW WHEN (NEW.connector_id IS NOT NULL AND NEW.task NOT LIKE 'delete%')
    EXECUTE FUNCTION gateway_set_owner();
CREATE TRIGGER set_owner BEFORE INSERT ON events
    FOR EACH ROW WHEN (NEW.connector_id IS NOT NULL) EXECUTE FUNCTION gateway_set_owner();
CREATE TRIGGER set_owner BEFORE INSERT OR UPDATE OF connector_id ON schedules
    FOR EACH ROW EXECUTE FUNCTION gateway_set_owner();
