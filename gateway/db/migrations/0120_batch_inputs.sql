-- The operations of batches, stored while the request that brings them is still read: in parts, sealed like the params of
-- jobs. There is no reference to the job, because its row is inserted last; inputs whose job never came are pruned.
CREATE TABLE batch_inputs (
    job_id uuid NOT NULL,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    -- index of the part's first operation
    first_index integer NOT NULL,
    -- one operation a line
    lines text NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, first_index)
);
CREATE INDEX batch_inputs_by_age ON batch_inputs (stored_at);

ALTER TABLE batch_inputs ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON batch_inputs USING (
    CASE WHEN (SELECT current_setting('gateway.tenant', true) = '*') THEN true
    ELSE organization_id = (SELECT CASE WHEN current_setting('gateway.tenant', true) <> '*'
        THEN NULLIF(current_setting('gateway.tenant', true), '')::uuid END) END);
GRANT SELECT, INSERT, UPDATE, DELETE ON batch_inputs TO gateway_app;
