-- Writes in the audit log have two entries: the intent, committed before the first byte is sent, and the settlement with
-- the outcome. Both have the same `call_id`. A job has the entry of its acceptance and the settlement at its end. The
-- outcome of a write without a settlement is unknown.

ALTER TABLE audit
    -- `event` for an action with one entry
    ADD COLUMN entry_kind text NOT NULL DEFAULT 'event',
    ADD COLUMN call_id uuid,
    ALTER COLUMN outcome DROP NOT NULL,
    ADD CONSTRAINT audit_entry_kind CHECK (
        entry_kind IN ('intent', 'settlement', 'event') AND (outcome IS NOT NULL OR entry_kind = 'intent')
    ) NOT VALID;
-- An entry that is inserted again, because its commit was not confirmed, is stored once.
CREATE UNIQUE INDEX audit_of_call ON audit (call_id, entry_kind) WHERE call_id IS NOT NULL;

-- The record that the job changes: named by its params, or made by it. For the audit entry at its end.
ALTER TABLE jobs ADD COLUMN target text;

-- Calls are counted apart from the entries that commit with a write or a result: transactions of one organization would
-- wait for each other's counts. The arrays have an element for each call.
CREATE FUNCTION gateway_count_calls(
    organization_ids uuid[], ats timestamptz[], outcomes text[], durations integer[]
) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO usage_counts AS counted (organization_id, seconds, at, calls, errors, took)
    WITH by_bucket AS (
        SELECT organization_id, span.seconds, date_bin(make_interval(secs => span.seconds), at, 'epoch') AS at,
               usage_bucket(took_ms) AS bucket, count(*) AS calls,
               count(*) FILTER (WHERE outcome NOT IN ('succeeded', 'accepted')) AS errors
        FROM unnest(organization_ids, ats, outcomes, durations) AS call (organization_id, at, outcome, took_ms)
        CROSS JOIN (VALUES (10), (60), (600)) AS span (seconds)
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
END
$$;

-- The entries of the background count by themselves: actions without a call, and acceptances of jobs.
CREATE OR REPLACE FUNCTION gateway_count_usage() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    call record;
BEGIN
    SELECT array_agg(organization_id) AS organization_ids, array_agg(at) AS ats, array_agg(outcome) AS outcomes,
           array_agg(took_ms) AS durations
    INTO call FROM entered WHERE call_id IS NULL OR outcome = 'accepted';
    IF call.ats IS NOT NULL THEN
        PERFORM gateway_count_calls(call.organization_ids, call.ats, call.outcomes, call.durations);
    END IF;
    RETURN NULL;
END
$$;
