-- The end of a session locks its jobs in the order of their ids, as workers lock the jobs that they run: statements on the
-- same jobs then wait for each other one way only.
CREATE OR REPLACE FUNCTION gateway_end_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.expires_at > now() THEN
        UPDATE jobs SET cancel_requested = true, next_attempt_at = CASE WHEN status = 'waiting' THEN now() END
        WHERE id = ANY (ARRAY(
            SELECT id FROM jobs
            WHERE organization_id = OLD.organization_id AND session_id = OLD.id
              AND status IN ('queued', 'waiting', 'running') AND NOT cancel_requested
            ORDER BY id FOR NO KEY UPDATE));
        UPDATE connect_sessions SET expires_at = now()
        WHERE (id = OLD.link_id OR session_id = OLD.id) AND completed_at IS NULL AND expires_at > now();
        PERFORM pg_notify('gateway', 'client:' || OLD.person_id);
    END IF;
    RETURN NULL;
END
$$;
