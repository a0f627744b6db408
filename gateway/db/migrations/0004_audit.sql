-- Who did what, when, with which outcome: never params, never secrets. And the counts from which usage is read.

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
    took_ms integer
);
CREATE INDEX audit_by_time ON audit (organization_id, at DESC, id DESC);

ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
-- Evaluated once for a statement and not for every row, so that indexes that begin with the organization serve it.
CREATE POLICY tenant ON audit USING (
    CASE WHEN (SELECT current_setting('gateway.tenant', true) = '*') THEN true
    ELSE organization_id = (SELECT CASE WHEN current_setting('gateway.tenant', true) <> '*'
        THEN NULLIF(current_setting('gateway.tenant', true), '')::uuid END) END);
GRANT SELECT, INSERT ON audit TO gateway_app;

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

ALTER TABLE usage_counts ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON usage_counts USING (
    CASE WHEN (SELECT current_setting('gateway.tenant', true) = '*') THEN true
    ELSE organization_id = (SELECT CASE WHEN current_setting('gateway.tenant', true) <> '*'
        THEN NULLIF(current_setting('gateway.tenant', true), '')::uuid END) END);
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
