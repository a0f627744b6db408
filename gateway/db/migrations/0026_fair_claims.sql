-- Claims that are fair by connector, and what claims need to know of connectors.

-- Work that nobody waits for gives way to work that somebody waits for.
ALTER TABLE jobs ADD COLUMN background boolean NOT NULL DEFAULT false;
UPDATE jobs SET background = true WHERE task = 'synchronize' AND client_id IS NULL;

-- The oldest queued job of each connector; the gateway's own tasks without a connector are a queue of their own.
DROP INDEX jobs_queued;
CREATE INDEX jobs_queued
    ON jobs (background, organization_id, (COALESCE(connector_id, organization_id)), created_at, id)
    WHERE status = 'queued';

-- Until when nothing new is claimed of a connector: its application said so, or its rate scope is used up. No reference
-- to the connector: a hold is worth seconds or minutes, and is pruned.
CREATE TABLE connector_holds (
    connector_id uuid PRIMARY KEY,
    held_until timestamptz NOT NULL
);
GRANT SELECT, INSERT, UPDATE, DELETE ON connector_holds TO gateway_app;

-- What lost two workers without any progress in between, oldest first.
DROP INDEX jobs_suspected;
CREATE INDEX jobs_suspected ON jobs (created_at, id) WHERE status = 'queued' AND crashes >= 2;
