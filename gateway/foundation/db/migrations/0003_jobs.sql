-- Jobs: the truth of everything that runs on workers, and of calls that carry an Idempotency-Key.

CREATE TABLE jobs (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    client_id uuid,
    connector_id uuid,
    workspace_name text,
    -- what a worker does with it: `operation`, or a task of the gateway's own
    task text NOT NULL DEFAULT 'operation',
    kind text,
    entity text,
    action text,
    params text NOT NULL DEFAULT '{}',
    -- how the caller wants the answer shaped
    selection text NOT NULL DEFAULT '{}',
    effect text NOT NULL DEFAULT 'read',
    -- run by the process that accepted it, for a caller that waits; no worker claims it
    is_inline boolean NOT NULL DEFAULT false,
    -- no caller waits for it, so that it yields to jobs that a caller waits for
    is_background boolean NOT NULL DEFAULT false,
    -- A column, because row-level security lets no index be searched for an expression that is not known to be leakproof.
    queue uuid GENERATED ALWAYS AS (COALESCE(connector_id, organization_id)) STORED,
    labels jsonb NOT NULL DEFAULT '{}',
    -- the request that asked for it, and how to look up what a write whose answer was lost may have made
    request_id text,
    find_by text,
    -- the W3C trace context of the caller
    traceparent text,
    -- SHA-256 of the token of a caller that can only follow redirects: it opens this job's result, and nothing else
    token_hash bytea,

    status text NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'running', 'waiting', 'succeeded', 'failed', 'canceled', 'unknown')),
    cancel_requested boolean NOT NULL DEFAULT false,
    total bigint,
    progress bigint NOT NULL DEFAULT 0,
    message text,
    error text,
    -- the answer around the records, which are in job_results
    result text,
    attempt integer NOT NULL DEFAULT 0,
    -- workers that were lost while they ran it
    worker_losses integer NOT NULL DEFAULT 0,

    -- the worker that runs it: each claim raises the fence, and every later write must carry it
    fence bigint NOT NULL DEFAULT 0,
    worker text,
    lease_until timestamptz,
    -- set before the first byte of a write goes out, cleared when its answer is stored
    in_flight_since timestamptz,
    -- what a later attempt needs to go on
    state text NOT NULL DEFAULT '{}',
    parts integer NOT NULL DEFAULT 0,

    -- counts changes; the number of the last event
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz,
    next_attempt_at timestamptz,
    expires_at timestamptz,
    -- Params, state and results may be sealed with a data key of the job; null if they are plain.
    key_id text,
    wrapped_key bytea,
    -- the webhook that the job's end is delivered to, beside those that subscribe to it
    callback uuid
) WITH (fillfactor = 85);
-- The oldest queued job of each connector; the gateway's own tasks without a connector have a queue of their own.
CREATE INDEX jobs_queued ON jobs (is_background, organization_id, queue, created_at, id) WHERE status = 'queued';
-- Jobs that lost two workers without any progress in between, oldest first.
CREATE INDEX jobs_suspected ON jobs (created_at, id) WHERE status = 'queued' AND worker_losses >= 2;
-- No lease in it, so that a heartbeat touches no index.
CREATE INDEX jobs_running ON jobs (organization_id) WHERE status = 'running';
CREATE INDEX jobs_waiting ON jobs (next_attempt_at) WHERE status = 'waiting';
-- Calls that carry an Idempotency-Key are jobs that no list shows.
CREATE INDEX jobs_listed ON jobs (organization_id, created_at DESC, id DESC) WHERE NOT is_inline;
CREATE INDEX jobs_by_status ON jobs (organization_id, status, created_at DESC, id DESC);
CREATE INDEX jobs_of_workspace ON jobs (organization_id, workspace_name, created_at DESC, id DESC) WHERE NOT is_inline;
CREATE INDEX jobs_of_entity ON jobs (organization_id, entity, created_at DESC, id DESC) WHERE NOT is_inline;
CREATE INDEX jobs_of_connector ON jobs (connector_id, created_at DESC);
CREATE INDEX jobs_expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL;
-- Pruning: results that have expired, among rows that stay for a day longer.
CREATE INDEX jobs_with_results ON jobs (expires_at)
    WHERE expires_at IS NOT NULL AND (result IS NOT NULL OR parts > 0);
-- Exports: the pages that a file was made of are deleted once their job has ended.
CREATE INDEX jobs_exported ON jobs (finished_at) WHERE task = 'export' AND parts > 0 AND finished_at IS NOT NULL;
-- The jobs of the synchronization schedule, which no caller asked for; they are pruned soon.
CREATE INDEX jobs_scheduled ON jobs (finished_at) WHERE task = 'synchronize' AND client_id IS NULL;

CREATE TABLE job_results (
    job_id uuid NOT NULL REFERENCES jobs ON DELETE CASCADE,
    organization_id uuid NOT NULL,
    part integer NOT NULL,
    -- one JSON record a line
    lines text NOT NULL,
    PRIMARY KEY (job_id, part)
);

CREATE TABLE job_events (
    job_id uuid NOT NULL REFERENCES jobs ON DELETE CASCADE,
    organization_id uuid NOT NULL,
    number bigint NOT NULL,
    event text NOT NULL,
    data text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, number)
);

CREATE TABLE idempotency_keys (
    organization_id uuid NOT NULL,
    client_id uuid NOT NULL,
    connector_id uuid NOT NULL,
    key text NOT NULL,
    -- SHA-256 of the request
    fingerprint bytea NOT NULL,
    -- deferred, because the key is taken first: that is where equal requests wait for each other
    job_id uuid NOT NULL REFERENCES jobs ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, client_id, connector_id, key)
);
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);
CREATE INDEX idempotency_keys_by_job ON idempotency_keys (job_id);

CREATE TABLE workers (
    id text PRIMARY KEY,
    seen_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz NOT NULL DEFAULT now()
);

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

-- No new job of a connector is claimed until this time: its application said so, or its rate limit is used up. There is no
-- reference to the connector, because a hold lasts seconds or minutes, and is pruned.
CREATE TABLE connector_holds (
    connector_id uuid PRIMARY KEY,
    held_until timestamptz NOT NULL
);

-- Pauses that applications asked for: for processes that start later, and while Redis is away.
CREATE TABLE rate_pauses (
    scope_id text PRIMARY KEY,
    paused_until timestamptz NOT NULL
);

CALL gateway_isolate('jobs');
CALL gateway_isolate('job_results');
CALL gateway_isolate('job_events');
CALL gateway_isolate('idempotency_keys');
CALL gateway_isolate('batch_inputs');
GRANT SELECT, INSERT, UPDATE, DELETE
    ON jobs, job_results, job_events, idempotency_keys, workers, batch_inputs, connector_holds, rate_pauses
    TO gateway_app;

-- Each change that callers can see gets a number and an event under it, and a notification names the version and whether it
-- is the last. The first number is the job's acceptance and the last its end; the row itself tells of both.
CREATE FUNCTION gateway_tell_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_final boolean := NEW.status IN ('succeeded', 'failed', 'canceled', 'unknown');
BEGIN
    NEW.version := OLD.version + 1;
    INSERT INTO job_events (job_id, organization_id, number, event, data)
    VALUES (NEW.id, NEW.organization_id, NEW.version,
            CASE WHEN NEW.status = OLD.status THEN 'progress' ELSE 'status' END,
            json_build_object('status', NEW.status, 'progress', NEW.progress, 'total', NEW.total,
                              'message', NEW.message, 'attempt', NEW.attempt,
                              'cancel_requested', NEW.cancel_requested)::text);
    IF is_final THEN
        NEW.version := NEW.version + 1;
        -- The event of the feed (0008). Synchronizations of the schedule are jobs of no caller and have none.
        IF OLD.status <> NEW.status AND NOT (NEW.task = 'synchronize' AND NEW.client_id IS NULL) THEN
            INSERT INTO events (organization_id, type, connector_id, workspace_name, callback, data)
            VALUES (NEW.organization_id, 'job.' || NEW.status, NEW.connector_id, NEW.workspace_name, NEW.callback,
                    json_build_object('job_id', NEW.id, 'status', NEW.status, 'entity', NEW.entity,
                                      'action', COALESCE(NEW.action, NEW.task), 'workspace_name', NEW.workspace_name,
                                      'labels', NEW.labels)::text);
            PERFORM pg_notify('gateway', 'events:' || NEW.organization_id);
        END IF;
    END IF;
    PERFORM pg_notify('gateway', format('job:%s:%s:%s', NEW.id, NEW.version,
                                        CASE WHEN is_final THEN 'true' ELSE 'false' END));
    IF NEW.cancel_requested AND NOT OLD.cancel_requested THEN
        PERFORM pg_notify('gateway', 'cancel:' || NEW.id);
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER tell BEFORE UPDATE ON jobs FOR EACH ROW
    WHEN (NOT NEW.is_inline
          AND (NEW.status, NEW.cancel_requested, NEW.total, NEW.progress, NEW.message)
              IS DISTINCT FROM (OLD.status, OLD.cancel_requested, OLD.total, OLD.progress, OLD.message))
    EXECUTE FUNCTION gateway_tell_job();

-- The oldest queued jobs of at most so many queues, starting at a queue and wrapping around: hops along the index instead
-- of reading deep queues. Jobs of tasks that the worker does not know are left for other workers and do not count as the
-- oldest of their queue. The settings and the order hold the planner to `jobs_queued`, because rows are queued for
-- moments only and the statistics then estimate one row: for that it would sort ten thousand, or read all jobs of the
-- organization by `jobs_by_status`, whose order is that of one queue if the organization and the queue are compared by
-- equality.
CREATE FUNCTION gateway_oldest_jobs(
    wants_background boolean,
    known_tasks text[],
    from_organization uuid,
    from_queue uuid,
    max_queues integer,
    max_jobs integer
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
              AND job.task = ANY (known_tasks)
            ORDER BY job.organization_id, job.queue, job.created_at, job.id LIMIT max_jobs;
    END LOOP;
END
$$;
