-- One feed of events for each organization. An event is inserted by the transaction that makes its change true, so that
-- no change is without its event and no event precedes its change.

-- A row is one event, or the events of many records that one statement wrote: a bulk load costs a row for a thousand.
CREATE TABLE events (
    -- the order of events of one job or record: drawn while its row is locked
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- without a foreign key, which would lock the organization's row for every event
    organization_id uuid NOT NULL,
    -- the id of the last event of this row, once it is numbered
    last_id bigint,
    size integer NOT NULL DEFAULT 1,
    type text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    connector_id uuid,
    -- callers limited to workspaces see the events of these only
    workspace_name text,
    -- the webhook that the end of a job is delivered to, beside those that subscribe to it
    callback uuid,
    -- the event's data; of records the members that all events of the row have
    data text NOT NULL DEFAULT '{}',
    entity text,
    record_ids text[]
);
-- To compress a thousand ids takes longer than to write them.
ALTER TABLE events ALTER record_ids SET STORAGE EXTERNAL;
CREATE INDEX events_unnumbered ON events (organization_id, sequence) WHERE last_id IS NULL;
CREATE UNIQUE INDEX events_numbered ON events (organization_id, last_id) WHERE last_id IS NOT NULL;

CREATE TABLE event_feeds (
    organization_id uuid PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
    -- of the newest numbered event
    last_id bigint NOT NULL DEFAULT 0,
    -- events up to this id are deleted
    pruned_id bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CALL gateway_isolate('events');
CALL gateway_isolate('event_feeds');
GRANT SELECT, INSERT, UPDATE, DELETE ON events, event_feeds TO gateway_app;

-- Transactions commit in another order than they insert, so an id that is drawn at the insertion could become visible
-- after a higher one. Events are therefore numbered after their commit, by the first reader: the feed's row is locked
-- until the numbers are committed, and the statements after the lock see every event that was committed before it.
-- An event that is never read costs its insertion only. Returns whether more events are left to number.
CREATE FUNCTION gateway_number_events(feed uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    head bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM events WHERE organization_id = feed AND last_id IS NULL) THEN
        RETURN false;
    END IF;
    INSERT INTO event_feeds (organization_id) VALUES (feed) ON CONFLICT DO NOTHING;
    SELECT last_id INTO head FROM event_feeds WHERE organization_id = feed FOR NO KEY UPDATE;
    WITH numbered AS (
        SELECT sequence, head + sum(size) OVER (ORDER BY sequence) AS id
        FROM (SELECT sequence, size FROM events WHERE organization_id = feed AND last_id IS NULL
              ORDER BY sequence LIMIT 5000) AS unnumbered
    ), written AS (
        UPDATE events SET last_id = numbered.id FROM numbered WHERE events.sequence = numbered.sequence
        RETURNING events.last_id
    )
    UPDATE event_feeds SET last_id = written.id FROM (SELECT max(last_id) AS id FROM written) AS written
    WHERE organization_id = feed AND written.id IS NOT NULL;
    RETURN EXISTS (SELECT FROM events WHERE organization_id = feed AND last_id IS NULL);
END
$$;

CREATE FUNCTION gateway_tell_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('gateway', 'events:' || NEW.organization_id);
    RETURN NULL;
END
$$;
CREATE TRIGGER tell AFTER INSERT ON events FOR EACH ROW WHEN (NEW.type NOT LIKE 'job.%')
    EXECUTE FUNCTION gateway_tell_event();

-- Ends of jobs are added and notified by the trigger of the jobs (0003): triggers of their own cost a job twice as much.
CREATE FUNCTION gateway_add_connector_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    workspace text := (SELECT name FROM workspaces WHERE id = NEW.workspace_id);
BEGIN
    INSERT INTO events (organization_id, type, connector_id, workspace_name, data)
    VALUES (NEW.organization_id, 'connector.' || TG_ARGV[0], NEW.id, workspace,
            json_build_object('connector_id', NEW.id, 'name', NEW.name, 'kind', NEW.kind, 'workspace_name', workspace,
                              'status', NEW.status, 'status_reason', NEW.status_reason)::text);
    RETURN NULL;
END
$$;
CREATE TRIGGER add_created AFTER INSERT ON connectors FOR EACH ROW EXECUTE FUNCTION gateway_add_connector_event('created');
CREATE TRIGGER add_needs_reauth AFTER UPDATE ON connectors FOR EACH ROW
    WHEN (NEW.status = 'needs_reauth' AND OLD.status <> NEW.status AND NEW.deleted_at IS NULL)
    EXECUTE FUNCTION gateway_add_connector_event('needs_reauth');
CREATE TRIGGER add_deleted AFTER UPDATE ON connectors FOR EACH ROW
    WHEN (NEW.deleted_at IS NOT NULL AND OLD.deleted_at IS NULL)
    EXECUTE FUNCTION gateway_add_connector_event('deleted');

-- Webhooks: subscriptions to the feed, and what was delivered to them.
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

CALL gateway_isolate('webhooks');
CALL gateway_isolate('webhook_deliveries');
GRANT SELECT, INSERT, UPDATE, DELETE ON webhooks, webhook_deliveries TO gateway_app;

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
