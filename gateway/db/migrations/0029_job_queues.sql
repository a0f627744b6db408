-- A column, because row-level security lets no index be searched for an expression that it does not know to be leakproof.
ALTER TABLE jobs ADD COLUMN queue uuid GENERATED ALWAYS AS (COALESCE(connector_id, organization_id)) STORED;
DROP INDEX jobs_queued;
CREATE INDEX jobs_queued ON jobs (background, organization_id, queue, created_at, id) WHERE status = 'queued';

-- The oldest queued jobs of so many queues, from a queue on and around: hops along the index instead of reading deep
-- queues. The settings hold the planner to that index whatever the statistics of a table say whose rows are queued for
-- moments: an estimate of one row makes it sort ten thousand.
CREATE FUNCTION gateway_oldest_jobs(
    is_background boolean, from_organization uuid, from_queue uuid, max_queues integer, max_jobs integer
) RETURNS TABLE (
    id uuid, organization_id uuid, queue uuid, kind text, attempt integer, crashes integer, created_at timestamptz
) LANGUAGE plpgsql STABLE SET enable_bitmapscan = off SET enable_seqscan = off SET enable_sort = off AS $$
DECLARE
    -- where it began, unless that is the very first queue
    first_organization uuid;
    first_queue uuid;
    here record;
    has_wrapped boolean := false;
BEGIN
    FOR hop IN 1..max_queues LOOP
        IF hop = 1 THEN
            SELECT job.organization_id, job.queue INTO here FROM jobs AS job
            WHERE job.status = 'queued' AND job.background = is_background
              AND (job.organization_id, job.queue) >= (from_organization, from_queue)
            ORDER BY job.organization_id, job.queue LIMIT 1;
        ELSE
            SELECT job.organization_id, job.queue INTO here FROM jobs AS job
            WHERE job.status = 'queued' AND job.background = is_background
              AND (job.organization_id, job.queue) > (here.organization_id, here.queue)
            ORDER BY job.organization_id, job.queue LIMIT 1;
        END IF;
        IF NOT FOUND AND NOT has_wrapped THEN
            has_wrapped := true;
            SELECT job.organization_id, job.queue INTO here FROM jobs AS job
            WHERE job.status = 'queued' AND job.background = is_background
            ORDER BY job.organization_id, job.queue LIMIT 1;
        END IF;
        IF here.queue IS NULL THEN
            RETURN;
        END IF;
        IF hop = 1 AND NOT has_wrapped THEN
            first_organization := here.organization_id;
            first_queue := here.queue;
        ELSIF has_wrapped AND (here.organization_id, here.queue) >= (first_organization, first_queue) THEN
            RETURN;
        END IF;
        RETURN QUERY
            SELECT job.id, job.organization_id, job.queue, job.kind, job.attempt, job.crashes, job.created_at
            FROM jobs AS job
            WHERE job.status = 'queued' AND job.background = is_background
              AND job.organization_id = here.organization_id AND job.queue = here.queue
            ORDER BY job.created_at, job.id LIMIT max_jobs;
    END LOOP;
END
$$;
