-- Who did what, when, with which outcome: never params, never secrets. The counts from which usage is read. And the log
-- of requests to applications.

CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id uuid NOT NULL,
    at timestamptz NOT NULL,
    actor uuid,
    connector_id uuid,
    what text NOT NULL,
    outcome text NOT NULL,
    intent text,
    request_id text,
    -- what was changed, if not a connector: the workspace, the job, the kind of an OAuth app
    target text,
    took_ms integer,
    -- the kind of the connector
    kind text,
    -- the names of the members that were written, never their values
    changed text[]
);
CREATE INDEX audit_by_time ON audit (organization_id, at DESC, id DESC);
CREATE INDEX audit_of_connector ON audit (organization_id, connector_id, at DESC, id DESC);
CREATE INDEX audit_of_actor ON audit (organization_id, actor, at DESC, id DESC);
CREATE INDEX audit_of_target ON audit (organization_id, target, at DESC, id DESC) WHERE target IS NOT NULL;
CREATE INDEX audit_of_operation ON audit (organization_id, what, at DESC, id DESC);
-- Most entries have one of these two outcomes, which the index by time serves.
CREATE INDEX audit_of_outcome ON audit (organization_id, outcome, at DESC, id DESC)
    WHERE outcome NOT IN ('succeeded', 'accepted');
CREATE INDEX audit_of_request ON audit (organization_id, request_id) WHERE request_id IS NOT NULL;
-- Failures of one connector in the last hour are counted without reading its successes.
CREATE INDEX audit_failures_of_connector ON audit (organization_id, connector_id, at DESC)
    WHERE outcome NOT IN ('succeeded', 'accepted');
-- Entries come in the order of their time, so blocks of a table are found by it with an index of a few kilobytes.
CREATE INDEX audit_by_age ON audit USING brin (at);

CALL gateway_isolate('audit');
GRANT SELECT, INSERT ON audit TO gateway_app;

-- Old entries can be deleted, and only these: the gateway's role has no right to change the log otherwise.
CREATE FUNCTION gateway_prune_audit(retention interval, max_rows integer) RETURNS integer
    LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
BEGIN ATOMIC
    WITH old AS (
        SELECT id FROM audit WHERE at < now() - greatest(retention, interval '1 day')
        LIMIT max_rows FOR UPDATE SKIP LOCKED
    ), deleted AS (
        DELETE FROM audit USING old WHERE audit.id = old.id RETURNING audit.id
    )
    SELECT count(*)::integer FROM deleted;
END;
REVOKE EXECUTE ON FUNCTION gateway_prune_audit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gateway_prune_audit TO gateway_app;

-- Calls counted as the audit log gets them: a month of usage is read from thousands of rows instead of millions.

CREATE TABLE usage_counts (
    organization_id uuid NOT NULL,
    -- what a row counts begins at `at` and is so many seconds long: 10, 60 or 600
    seconds integer NOT NULL,
    at timestamptz NOT NULL,
    calls bigint NOT NULL,
    errors bigint NOT NULL,
    -- calls by duration: the first element is bucket 0 of usage_bucket
    took integer[] NOT NULL,
    PRIMARY KEY (organization_id, seconds, at)
) WITH (fillfactor = 70);
-- What pruning looks for.
CREATE INDEX usage_counts_by_time ON usage_counts (seconds, at);

CALL gateway_isolate('usage_counts');
GRANT SELECT, INSERT, UPDATE, DELETE ON usage_counts TO gateway_app;

-- Three buckets for each doubling of 1 + milliseconds; bucket 54, the last, begins at 262 seconds.
CREATE FUNCTION usage_bucket(took_ms integer) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN least(54, floor(3 * ln(1 + greatest(took_ms, 0)::float8) / ln(2::float8) + 1e-9))::integer;

-- Rows are written in one order, so that processes never wait for each other in a circle.
CREATE FUNCTION gateway_count_usage() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO usage_counts AS counted (organization_id, seconds, at, calls, errors, took)
    WITH by_bucket AS (
        SELECT organization_id, span.seconds, date_bin(make_interval(secs => span.seconds), at, 'epoch') AS at,
               usage_bucket(took_ms) AS bucket, count(*) AS calls,
               count(*) FILTER (WHERE outcome NOT IN ('succeeded', 'accepted')) AS errors
        FROM entered CROSS JOIN (VALUES (10), (60), (600)) AS span (seconds)
        GROUP BY 1, 2, 3, 4
    ), total AS (
        SELECT organization_id, seconds, at, sum(calls) AS calls, sum(errors) AS errors
        FROM by_bucket GROUP BY 1, 2, 3
    )
    SELECT organization_id, seconds, at, total.calls, total.errors,
           array_agg(COALESCE(by_bucket.calls, 0)::integer ORDER BY bucket)
    FROM total CROSS JOIN generate_series(0, 54) AS bucket
    LEFT JOIN by_bucket USING (organization_id, seconds, at, bucket)
    GROUP BY organization_id, seconds, at, total.calls, total.errors
    ORDER BY organization_id, seconds, at
    ON CONFLICT (organization_id, seconds, at) DO UPDATE
    SET calls = counted.calls + EXCLUDED.calls, errors = counted.errors + EXCLUDED.errors,
        took = ARRAY(SELECT former + added
                     FROM unnest(counted.took, EXCLUDED.took) WITH ORDINALITY AS pair (former, added, place)
                     ORDER BY place);
    RETURN NULL;
END
$$;
CREATE TRIGGER count_usage AFTER INSERT ON audit REFERENCING NEW TABLE AS entered
    FOR EACH STATEMENT EXECUTE FUNCTION gateway_count_usage();

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

CALL gateway_isolate('request_log');
GRANT SELECT, INSERT, UPDATE, DELETE ON request_log TO gateway_app;
