-- Metered calls: the ends of operations in the audit log, counted by hour, client, person and workspace as their entries enter
-- the hash chain. Once an hour is over its counts become events, which never change; entries that come later make others.

-- The effect of the operation; null for an entry that is no end of a call or the acceptance of one.
ALTER TABLE audit ADD COLUMN effect text;
-- A job that only stores the answer of a call has no audit entry.
ALTER TABLE jobs ADD COLUMN is_answer boolean NOT NULL DEFAULT false;

CREATE TABLE usage_open (
    organization_id uuid NOT NULL,
    hour timestamptz NOT NULL,
    client_id uuid,
    person_id uuid,
    workspace_name text,
    writes bigint NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    unknown bigint NOT NULL,
    UNIQUE NULLS NOT DISTINCT (organization_id, hour, client_id, person_id, workspace_name)
);
CREATE INDEX usage_open_by_hour ON usage_open (hour);

CREATE TABLE usage_events (
    -- in the order in which they can be read
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    organization_id uuid NOT NULL,
    hour timestamptz NOT NULL,
    client_id uuid,
    person_id uuid,
    workspace_name text,
    writes bigint NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    unknown bigint NOT NULL,
    published_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX usage_events_read ON usage_events (organization_id, number);
CREATE INDEX usage_events_of_hour ON usage_events (organization_id, hour);
CREATE INDEX usage_events_old ON usage_events (published_at);

-- Writes without settlement that were counted as unknown: a settlement that comes later is not counted again.
CREATE TABLE usage_unknown (
    call_id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    at timestamptz NOT NULL
);

CALL gateway_isolate('usage_open');
CALL gateway_isolate('usage_events');
CALL gateway_isolate('usage_unknown');
GRANT SELECT, INSERT, UPDATE, DELETE ON usage_open TO gateway_app;
GRANT SELECT, INSERT, DELETE ON usage_events, usage_unknown TO gateway_app;
