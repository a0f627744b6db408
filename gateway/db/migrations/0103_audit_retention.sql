-- Old audit entries can be deleted, and only these: the gateway's role has no right to change the log otherwise.

-- Entries come in the order of their time, so blocks of a table are found by it with an index of a few kilobytes.
CREATE INDEX audit_by_age ON audit USING brin (at);

CREATE FUNCTION gateway_prune_audit(retention interval, max_rows integer) RETURNS integer
    LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
BEGIN ATOMIC
    WITH old AS (
        SELECT id FROM audit WHERE at < now() - greatest(retention, interval '1 day')
        LIMIT max_rows FOR UPDATE SKIP LOCKED
    ), deleted AS (
        DELETE FROM audit USING old WHERE audit.id = old.id RETURNING audit.id
    )
    SELECT count(*)::integer FROM deleted;
END;
REVOKE EXECUTE ON FUNCTION gateway_prune_audit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gateway_prune_audit TO gateway_app;
