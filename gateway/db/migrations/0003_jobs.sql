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
    shape text NOT NULL DEFAULT '{}',
    effect text NOT NULL DEFAULT 'read',
    -- run by the process that accepted it, for a caller who waits; nobody else may take it up
    is_inline boolean NOT NULL DEFAULT false,
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
    crashes integer NOT NULL DEFAULT 0,

    -- who runs it: each claim raises the fence, and every later write must carry it
    fence bigint NOT NULL DEFAULT 0,
    worker text,
    lease_until timestamptz,
    -- set before the first byte of a write goes out, cleared when its answer is stored
    sending_since timestamptz,
    -- what a later attempt needs to go on
    state text NOT NULL DEFAULT '{}',
    parts integer NOT NULL DEFAULT 0,

    -- counts changes; the number of the last event
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz,
    next_attempt_at timestamptz,
    expires_at timestamptz
) WITH (fillfactor = 85);
-- The oldest queued job of each organization, for fair claims; what lost its worker is claimed apart.
CREATE INDEX jobs_queued ON jobs (organization_id, created_at, id) WHERE status = 'queued' AND crashes = 0;
CREATE INDEX jobs_suspected ON jobs (created_at, id) WHERE status = 'queued' AND crashes > 0;
-- No lease in it, so that a heartbeat touches no index.
CREATE INDEX jobs_running ON jobs (organization_id) WHERE status = 'running';
CREATE INDEX jobs_waiting ON jobs (next_attempt_at) WHERE status = 'waiting';
CREATE INDEX jobs_listed ON jobs (organization_id, created_at DESC, id DESC);
CREATE INDEX jobs_of_connector ON jobs (connector_id, created_at DESC);
CREATE INDEX jobs_expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL;

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

ALTER TABLE jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE job_results ENABLE ROW LEVEL SECURITY;
ALTER TABLE job_events ENABLE ROW LEVEL SECURITY;
ALTER TABLE idempotency_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON jobs USING (gateway_sees(organization_id));
CREATE POLICY tenant ON job_results USING (gateway_sees(organization_id));
CREATE POLICY tenant ON job_events USING (gateway_sees(organization_id));
CREATE POLICY tenant ON idempotency_keys USING (gateway_sees(organization_id));
GRANT SELECT, INSERT, UPDATE, DELETE ON jobs, job_results, job_events, idempotency_keys, workers TO gateway_app;

-- Every change that callers can see gets a number, an event under it, and a word to who waits. The first number is the
-- job's acceptance and the last its end; neither needs an event of its own, the row tells them.
CREATE FUNCTION gateway_tell_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    INSERT INTO job_events (job_id, organization_id, number, event, data)
    VALUES (NEW.id, NEW.organization_id, NEW.version,
            CASE WHEN NEW.status = OLD.status THEN 'progress' ELSE 'status' END,
            json_build_object('status', NEW.status, 'progress', NEW.progress, 'total', NEW.total,
                              'message', NEW.message, 'attempt', NEW.attempt,
                              'cancel_requested', NEW.cancel_requested)::text);
    IF NEW.status IN ('succeeded', 'failed', 'canceled', 'unknown') THEN
        NEW.version := NEW.version + 1;
    END IF;
    PERFORM pg_notify('gateway', 'job:' || NEW.id);
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
