-- Jobs whose key the worker has forgotten are left out, like those of tasks that it does not know, so that they do not hold
-- up the others of their queue. Workers of an earlier version call the function without the keys.
DROP FUNCTION gateway_oldest_jobs(boolean, text[], uuid, uuid, integer, integer);
CREATE FUNCTION gateway_oldest_jobs(
    wants_background boolean,
    known_tasks text[],
    from_organization uuid,
    from_queue uuid,
    max_queues integer,
    max_jobs integer,
    forgotten_keys text[] DEFAULT '{}'
) RETURNS TABLE (
    id uuid, organization_id uuid, queue uuid, kind text, attempt integer, worker_losses integer, created_at timestamptz
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
            WHERE job.status = 'queued' AND job.is_background = wants_background
              AND (job.organization_id, job.queue) >= (from_organization, from_queue)
            ORDER BY job.organization_id, job.queue LIMIT 1;
        ELSE
            SELECT job.organization_id, job.queue INTO here FROM jobs AS job
            WHERE job.status = 'queued' AND job.is_background = wants_background
              AND (job.organization_id, job.queue) > (here.organization_id, here.queue)
            ORDER BY job.organization_id, job.queue LIMIT 1;
        END IF;
        IF NOT FOUND AND NOT has_wrapped THEN
            has_wrapped := true;
            SELECT job.organization_id, job.queue INTO here FROM jobs AS job
            WHERE job.status = 'queued' AND job.is_background = wants_background
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
            SELECT job.id, job.organization_id, job.queue, job.kind, job.attempt, job.worker_losses, job.created_at
            FROM jobs AS job
            WHERE job.status = 'queued' AND job.is_background = wants_background
              AND (job.organization_id, job.queue) >= (here.organization_id, here.queue)
              AND (job.organization_id, job.queue) <= (here.organization_id, here.queue)
              AND job.task = ANY (known_tasks) AND (job.key_id <> ALL (forgotten_keys)) IS NOT FALSE
            ORDER BY job.organization_id, job.queue, job.created_at, job.id LIMIT max_jobs;
    END LOOP;
END
$$;
