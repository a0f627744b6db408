-- Webhooks: subscriptions to an organization's feed, and what was delivered to them.

CREATE TABLE webhooks (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    -- the client that created it, or for the ends of whose jobs it is a callback
    client_id uuid NOT NULL,
    -- a callback gets the ends of those jobs only that name it
    is_callback boolean NOT NULL DEFAULT false,
    url text NOT NULL,
    description text,
    types text[] NOT NULL,
    connector_id uuid,
    workspace_name text,
    entity text,
    -- the only workspaces of the client that created it; null if it is not limited
    workspaces text[],
    include_record boolean NOT NULL DEFAULT false,
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'disabled')),
    status_reason text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),

    -- the signing secrets, the current one and the one before it
    key_id text NOT NULL,
    wrapped_key bytea NOT NULL,
    sealed bytea NOT NULL,
    -- until when deliveries are signed with the previous secret too
    previous_until timestamptz,

    -- every event up to this id was delivered, or is in webhook_deliveries, or does not pass the filter
    position bigint NOT NULL,
    -- nothing is sent before this time, because the receiver failed or asked to wait
    held_until timestamptz NOT NULL DEFAULT '-infinity',
    -- when the first of the pending deliveries is due
    retry_at timestamptz,
    -- whether there are so many of them that further events stay in the feed
    is_full boolean NOT NULL DEFAULT false,
    -- turns in a row without a successful delivery, and since when
    failures integer NOT NULL DEFAULT 0,
    failing_since timestamptz,
    -- the worker that delivers now: each claim raises the fence, and its results must carry it
    fence bigint NOT NULL DEFAULT 0,
    worker text,
    lease_until timestamptz,
    turn_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 70);
CREATE INDEX webhooks_listed ON webhooks (organization_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX webhooks_of_callbacks ON webhooks (organization_id, client_id, url) WHERE is_callback;

CREATE TABLE webhook_deliveries (
    webhook_id uuid NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    event_id bigint NOT NULL,
    organization_id uuid NOT NULL,
    -- deliveries of one subject are sent in the order of their events
    subject text NOT NULL,
    -- the event as the feed has it
    event text NOT NULL,
    status text NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed')),
    attempts integer NOT NULL DEFAULT 0,
    first_attempt_at timestamptz,
    attempted_at timestamptz,
    -- null where an earlier delivery of the same subject comes first
    next_attempt_at timestamptz,
    response_status integer,
    duration_ms integer,
    -- the first KiB
    response_body text,
    error text,
    PRIMARY KEY (webhook_id, event_id)
);
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (webhook_id, event_id) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_old ON webhook_deliveries (attempted_at) WHERE status <> 'pending';

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{webhooks,webhook_deliveries}'::text[] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format($policy$
            CREATE POLICY tenant ON %I USING (
                CASE WHEN (SELECT current_setting('gateway.tenant', true) = '*') THEN true
                ELSE organization_id = (SELECT CASE WHEN current_setting('gateway.tenant', true) <> '*'
                    THEN NULLIF(current_setting('gateway.tenant', true), '')::uuid END) END)
        $policy$, name);
    END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON webhooks, webhook_deliveries TO gateway_app;

-- The callback that a job's end is delivered to, beside the webhooks that subscribe to it.
ALTER TABLE jobs ADD COLUMN callback uuid;
ALTER TABLE events ADD COLUMN callback uuid;
CREATE OR REPLACE FUNCTION gateway_add_job_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (organization_id, type, connector_id, workspace_name, callback, data)
    VALUES (NEW.organization_id, 'job.' || NEW.status, NEW.connector_id, NEW.workspace_name, NEW.callback,
            json_build_object('job_id', NEW.id, 'status', NEW.status, 'entity', NEW.entity,
                              'action', COALESCE(NEW.action, NEW.task), 'workspace_name', NEW.workspace_name,
                              'labels', NEW.labels)::text);
    RETURN NULL;
END
$$;

-- A webhook that is created, enabled, replayed or has a delivery resent may have something to send.
CREATE FUNCTION gateway_tell_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('gateway', 'webhook:' || NEW.id);
    RETURN NULL;
END
$$;
CREATE TRIGGER tell_created AFTER INSERT ON webhooks FOR EACH ROW EXECUTE FUNCTION gateway_tell_webhook();
CREATE TRIGGER tell AFTER UPDATE ON webhooks FOR EACH ROW
    WHEN (NEW.updated_at <> OLD.updated_at) EXECUTE FUNCTION gateway_tell_webhook();
