-- Schedules: operations that run as jobs at the times of a cron expression.

CREATE TABLE schedules (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    -- the client that made it, in whose name it runs
    client_id uuid NOT NULL,
    -- without a foreign key: a schedule outlives its connector, and says so
    connector_id uuid NOT NULL,
    workspace_name text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    entity text NOT NULL,
    action text NOT NULL,
    selection text NOT NULL DEFAULT '{}',
    -- the params, sealed as those of jobs are
    key_id text NOT NULL,
    wrapped_key bytea NOT NULL,
    sealed bytea NOT NULL,
    cron text NOT NULL,
    timezone text NOT NULL,
    is_enabled boolean NOT NULL,
    overlap text NOT NULL CHECK (overlap IN ('skip', 'queue')),
    catch_up text NOT NULL CHECK (catch_up IN ('one', 'none')),
    labels jsonb NOT NULL DEFAULT '{}',
    -- the format of the file that a list or search is collected into
    file text CHECK (file IN ('ndjson', 'csv')),
    -- the next slot; null while it is disabled
    next_run_at timestamptz,
    last_run_at timestamptz,
    -- the jobs of its last runs, the newest first
    job_ids uuid[] NOT NULL DEFAULT '{}',
    -- the last slot that was not run, and why
    missed_at timestamptz,
    missed_reason text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX schedules_due ON schedules (next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX schedules_listed ON schedules (organization_id, created_at, id);

CALL gateway_isolate('schedules');
GRANT SELECT, INSERT, UPDATE, DELETE ON schedules TO gateway_app;
