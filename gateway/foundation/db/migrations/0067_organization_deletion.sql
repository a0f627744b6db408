-- An organization whose data are deleted: its row and the client that asked stay until nobody can read the job's result.
ALTER TABLE organizations ADD COLUMN deletion_job uuid;

-- Deletes at most so many rows of each table that belong to an organization, also of new tables, and returns how many.
-- What the job that deletes and its caller need stays: the job, and the membership of the client. Entries of the audit
-- log since then stay too.
CREATE FUNCTION gateway_delete_rows(owner uuid, kept_job uuid, kept_client uuid, since timestamptz, max_rows integer)
    RETURNS TABLE (name text, deleted bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    owned record;
BEGIN
    FOR owned IN
        SELECT tables.relname::text AS name,
               EXISTS (SELECT FROM pg_attribute WHERE attrelid = tables.oid AND attname = 'job_id') AS has_job
        FROM pg_class AS tables JOIN pg_attribute AS owner_column ON owner_column.attrelid = tables.oid
        WHERE tables.relnamespace = current_schema()::regnamespace AND tables.relkind = 'r'
          AND owner_column.attname = 'organization_id' AND NOT owner_column.attisdropped
        ORDER BY tables.relname
    LOOP
        BEGIN
            EXECUTE format(
                'DELETE FROM %1$I WHERE ctid = ANY (ARRAY(
                     SELECT ctid FROM %1$I WHERE organization_id = $1 AND %2$s LIMIT $5))',
                owned.name,
                CASE
                    WHEN owned.name = 'jobs' THEN 'id <> $2'
                    WHEN owned.name = 'client_organizations' THEN 'client_id <> $3'
                    WHEN owned.name = 'audit' THEN 'at < $4'
                    WHEN owned.has_job THEN 'job_id IS DISTINCT FROM $2'
                    ELSE 'true'
                END
            ) USING owner, kept_job, kept_client, since, max_rows;
            GET DIAGNOSTICS deleted = ROW_COUNT;
        EXCEPTION WHEN foreign_key_violation THEN
            deleted := 0;  -- the rows that refer to these are deleted first
        END;
        name := owned.name;
        RETURN NEXT;
    END LOOP;
END
$$;
REVOKE EXECUTE ON FUNCTION gateway_delete_rows FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gateway_delete_rows TO gateway_app;
