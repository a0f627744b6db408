-- Each HTTP request to an application, for a day: what explains a failure. Unlogged, because rows come by the thousand
-- and nothing depends on them: a crash of PostgreSQL empties the table.

CREATE UNLOGGED TABLE request_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id uuid NOT NULL,
    connector_id uuid NOT NULL,
    at timestamptz NOT NULL,
    job_id uuid,
    request_id text,
    operation text,
    method text NOT NULL,
    -- without the query
    path text NOT NULL,
    -- null where no complete response came: `error` says why
    status smallint,
    duration_ms integer NOT NULL,
    attempt smallint NOT NULL,
    bytes_in bigint NOT NULL,
    bytes_out bigint NOT NULL,
    upstream_request_id text,
    error text
);
CREATE INDEX request_log_by_time ON request_log (organization_id, id DESC);
CREATE INDEX request_log_of_connector ON request_log (organization_id, connector_id, id DESC);
CREATE INDEX request_log_of_job ON request_log (organization_id, job_id, id DESC) WHERE job_id IS NOT NULL;
CREATE INDEX request_log_of_request ON request_log (organization_id, request_id, id DESC) WHERE request_id IS NOT NULL;
-- Rows come in the order of their time, so that blocks are found by it with an index of a few kilobytes.
CREATE INDEX request_log_by_age ON request_log USING brin (at);

ALTER TABLE request_log ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON request_log USING (
    CASE WHEN (SELECT current_setting('gateway.tenant', true) = '*') THEN true
    ELSE organization_id = (SELECT CASE WHEN current_setting('gateway.tenant', true) <> '*'
        THEN NULLIF(current_setting('gateway.tenant', true), '')::uuid END) END);
GRANT SELECT, INSERT, UPDATE, DELETE ON request_log TO gateway_app;
