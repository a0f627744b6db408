-- Who waits for the end of a job need not look at each step of it: a notification says which version it is about, and
-- whether that is the last.
CREATE OR REPLACE FUNCTION gateway_tell_job() RETURNS trigger LANGUAGE plpgsql AS $$
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
    END IF;
    PERFORM pg_notify('gateway', format('job:%s:%s:%s', NEW.id, NEW.version,
                                        CASE WHEN is_final THEN 'true' ELSE 'false' END));
    IF NEW.cancel_requested AND NOT OLD.cancel_requested THEN
        PERFORM pg_notify('gateway', 'cancel:' || NEW.id);
    END IF;
    RETURN NEW;
END
$$;
