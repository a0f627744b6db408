-- Approvals: calls that wait until a person says yes. The job of a call holds it; the approval decides about the job.

-- What approvals are bound to: credentials that a person replaced are another account; renewed tokens are the same.
ALTER TABLE connectors ADD COLUMN account_id uuid NOT NULL DEFAULT gen_random_uuid();

CREATE TABLE approvals (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    job_id uuid NOT NULL REFERENCES jobs ON DELETE CASCADE,
    connector_id uuid,
    workspace_name text,
    -- the client or the person for whom the job runs
    requested_by uuid,
    status text NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'approved', 'denied', 'expired', 'superseded')),
    reason text NOT NULL,
    -- JSON: what each statement demands, `{policy, reason, group, count}`
    rules text NOT NULL,
    digest text NOT NULL,
    account_id uuid NOT NULL,
    items bigint NOT NULL,
    -- what the approvers see, sealed with the data key of the job
    document text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    -- when the job went on; it does so once
    released_at timestamptz
);
CREATE INDEX approvals_listed ON approvals (organization_id, created_at DESC, id DESC);
CREATE INDEX approvals_of_job ON approvals (job_id, created_at DESC);
CREATE INDEX approvals_pending ON approvals (expires_at) WHERE status = 'pending';

CREATE TABLE approval_decisions (
    approval_id uuid NOT NULL REFERENCES approvals ON DELETE CASCADE,
    organization_id uuid NOT NULL,
    client_id uuid NOT NULL,
    -- the person's groups at that time
    groups text[] NOT NULL,
    decision text NOT NULL CHECK (decision IN ('approved', 'denied')),
    reason text,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (approval_id, client_id)
);

CALL gateway_isolate('approvals');
CALL gateway_isolate('approval_decisions');
GRANT SELECT, INSERT, UPDATE, DELETE ON approvals, approval_decisions TO gateway_app;

-- What callers see of the job's latest approval: JSON, `{id, status, reason, expires_at}`.
ALTER TABLE jobs ADD COLUMN approval text;

-- An approval changes its job: it waits, is queued again, or is canceled by `operations.approvals`, which settles its audit
-- entry. Each change has an event.
CREATE FUNCTION gateway_tell_approval() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE jobs
    SET approval = json_build_object('id', NEW.id, 'status', NEW.status, 'reason', NEW.reason,
                                     'expires_at', to_char(NEW.expires_at AT TIME ZONE 'UTC',
                                                           'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text,
        status = CASE WHEN NEW.status = 'approved' AND status = 'waiting' THEN 'queued' ELSE status END
    WHERE id = NEW.job_id;
    INSERT INTO events (organization_id, type, connector_id, workspace_name, data)
    VALUES (NEW.organization_id,
            'approval.' || CASE NEW.status WHEN 'pending' THEN 'requested' ELSE NEW.status END,
            NEW.connector_id, NEW.workspace_name,
            json_build_object('approval_id', NEW.id, 'job_id', NEW.job_id, 'status', NEW.status,
                              'reason', NEW.reason)::text);
    PERFORM pg_notify('gateway', 'events:' || NEW.organization_id);
    RETURN NULL;
END
$$;
CREATE TRIGGER tell AFTER INSERT OR UPDATE OF status ON approvals FOR EACH ROW EXECUTE FUNCTION gateway_tell_approval();

-- A change of the policies that decide makes what they asked for obsolete.
CREATE FUNCTION gateway_supersede_approvals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE approvals SET status = 'superseded'
    WHERE organization_id = NEW.organization_id AND status IN ('pending', 'approved') AND released_at IS NULL;
    RETURN NULL;
END
$$;
CREATE TRIGGER supersede AFTER INSERT OR UPDATE OF is_current ON policies
    FOR EACH ROW WHEN (NEW.mode = 'enforce') EXECUTE FUNCTION gateway_supersede_approvals();

-- A job that ended otherwise, such as one that was canceled, asks nobody any longer.
CREATE FUNCTION gateway_end_approvals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE approvals SET status = 'superseded' WHERE job_id = NEW.id AND status = 'pending';
    RETURN NULL;
END
$$;
CREATE TRIGGER end_approvals AFTER UPDATE OF status ON jobs FOR EACH ROW
    WHEN (NEW.approval IS NOT NULL AND NEW.status IN ('succeeded', 'failed', 'canceled', 'unknown'))
    EXECUTE FUNCTION gateway_end_approvals();
