-- The message that an organization sends by one of its connectors when a call waits for an approval.

CREATE TABLE approval_notices (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL UNIQUE REFERENCES organizations ON DELETE CASCADE,
    -- the client that set it, in whose name it is sent
    client_id uuid NOT NULL,
    -- without a foreign key: the setting outlives its connector, and its next message fails
    connector_id uuid NOT NULL,
    workspace_name text NOT NULL,
    kind text NOT NULL,
    entity text NOT NULL,
    action text NOT NULL,
    effect text NOT NULL,
    -- the params with placeholders, sealed as those of jobs are
    key_id text NOT NULL,
    wrapped_key bytea NOT NULL,
    sealed bytea NOT NULL,
    -- how many messages were sent in the hour that begins then
    hour timestamptz,
    sent integer NOT NULL DEFAULT 0,
    -- the job of the last message
    last_job_id uuid,
    -- the last approval of which nothing was sent, and why
    skipped_at timestamptz,
    skipped_reason text,
    updated_at timestamptz NOT NULL DEFAULT now()
);

CALL gateway_isolate('approval_notices');
GRANT SELECT, INSERT, UPDATE, DELETE ON approval_notices TO gateway_app;
