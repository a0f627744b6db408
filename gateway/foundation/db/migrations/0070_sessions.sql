-- Sessions: what a client may do for a person, and the records of it.

-- the groups for whose members the client may open sessions
ALTER TABLE clients ADD COLUMN delegate_for text[] NOT NULL DEFAULT '{}';

CREATE TABLE person_sessions (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    -- the client that opened it, or the session in which it was opened
    client_id uuid NOT NULL REFERENCES clients ON DELETE CASCADE,
    person_id uuid NOT NULL REFERENCES clients ON DELETE CASCADE,
    -- the session in which it was opened, which allows at least as much
    parent_id uuid REFERENCES person_sessions ON DELETE CASCADE,
    scopes text[] NOT NULL,
    -- names of the only workspaces; null is all
    workspaces text[],
    -- JSON: connectors, tools, effects and budgets, with those of the sessions in which it was opened
    limits jsonb NOT NULL,
    -- the connect link that the session came with
    link_id uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX person_sessions_listed ON person_sessions (organization_id, created_at DESC, id DESC);
CREATE INDEX person_sessions_of_client ON person_sessions (client_id);
CREATE INDEX person_sessions_of_person ON person_sessions (person_id);
CREATE INDEX person_sessions_of_parent ON person_sessions (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX person_sessions_by_expiry ON person_sessions (expires_at);
CALL gateway_isolate('person_sessions');
GRANT SELECT, INSERT, UPDATE, DELETE ON person_sessions TO gateway_app;

ALTER TABLE tokens ADD COLUMN session_id uuid REFERENCES person_sessions ON DELETE CASCADE;
CREATE INDEX tokens_by_session ON tokens (session_id) WHERE session_id IS NOT NULL;

-- What the session of a job allows, because a worker decides about the job again: JSON.
ALTER TABLE jobs ADD COLUMN session jsonb, ADD COLUMN session_id uuid;
CREATE INDEX jobs_of_session ON jobs (session_id, created_at DESC, id DESC) WHERE session_id IS NOT NULL;
CREATE FUNCTION gateway_set_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.session_id := (NEW.session ->> 'id')::uuid;
    RETURN NEW;
END
$$;
CREATE TRIGGER set_session BEFORE INSERT ON jobs
    FOR EACH ROW WHEN (NEW.session IS NOT NULL) EXECUTE FUNCTION gateway_set_session();

-- The actor is the person; this is the client that acted for the person.
ALTER TABLE audit ADD COLUMN acting_client uuid, ADD COLUMN session_id uuid;

-- A session that ends early ends what it began; its tokens go with its row.
CREATE FUNCTION gateway_end_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.expires_at > now() THEN
        UPDATE jobs SET cancel_requested = true, next_attempt_at = CASE WHEN status = 'waiting' THEN now() END
        WHERE organization_id = OLD.organization_id AND session_id = OLD.id
          AND status IN ('queued', 'waiting', 'running') AND NOT cancel_requested;
        UPDATE connect_sessions SET expires_at = now()
        WHERE id = OLD.link_id AND completed_at IS NULL AND expires_at > now();
        PERFORM pg_notify('gateway', 'client:' || OLD.person_id);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER end_session AFTER DELETE ON person_sessions FOR EACH ROW EXECUTE FUNCTION gateway_end_session();

-- The budget of a session is no budget of the organization: no process caches it.
ALTER TABLE budgets ADD COLUMN session_id uuid REFERENCES person_sessions ON DELETE CASCADE;
CREATE INDEX budgets_of_session ON budgets (session_id) WHERE session_id IS NOT NULL;
DROP TRIGGER tell ON budgets;
CREATE TRIGGER tell AFTER INSERT OR UPDATE ON budgets
    FOR EACH ROW WHEN (NEW.session_id IS NULL) EXECUTE FUNCTION gateway_tell_budget();
CREATE TRIGGER tell_deletion AFTER DELETE ON budgets
    FOR EACH ROW WHEN (OLD.session_id IS NULL) EXECUTE FUNCTION gateway_tell_budget();
