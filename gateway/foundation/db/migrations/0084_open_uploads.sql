-- Counts of the unfinished uploads of a connector and of an organization.
CREATE INDEX uploads_open ON uploads (organization_id, connector_id, expires_at) WHERE NOT is_complete;
