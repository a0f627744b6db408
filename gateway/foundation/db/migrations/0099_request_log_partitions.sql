-- The request log in partitions by id, so that old requests are dropped by the file and not deleted by the row. Ids grow with
-- time, and so a partition has the requests of a stretch of time. The last one takes every id from its lowest on: no insertion
-- lacks a partition, whatever the clock says and however long nothing has run.

-- The table of earlier versions becomes the first partition as it is. No row is read or copied.
ALTER TABLE request_log RENAME TO request_log_0;
ALTER SEQUENCE request_log_id_seq RENAME TO request_log_0_id_seq;
ALTER INDEX request_log_pkey RENAME TO request_log_0_pkey;
ALTER INDEX request_log_by_time RENAME TO request_log_0_by_time;
ALTER INDEX request_log_of_connector RENAME TO request_log_0_of_connector;
ALTER INDEX request_log_of_job RENAME TO request_log_0_of_job;
ALTER INDEX request_log_of_request RENAME TO request_log_0_of_request;
ALTER INDEX request_log_by_age RENAME TO request_log_0_by_age;

-- Statements of earlier versions work on it. PostgreSQL has no unlogged partitioned tables; the partitions are unlogged.
CREATE TABLE request_log (LIKE request_log_0) PARTITION BY RANGE (id);
ALTER TABLE request_log ADD PRIMARY KEY (id), ALTER id ADD GENERATED ALWAYS AS IDENTITY;
CREATE INDEX request_log_by_time ON request_log (organization_id, id DESC);
CREATE INDEX request_log_of_connector ON request_log (organization_id, connector_id, id DESC);
CREATE INDEX request_log_of_job ON request_log (organization_id, job_id, id DESC) WHERE job_id IS NOT NULL;
CREATE INDEX request_log_of_request ON request_log (organization_id, request_id, id DESC) WHERE request_id IS NOT NULL;
CREATE INDEX request_log_by_age ON request_log USING brin (at);
SELECT setval('request_log_id_seq', nextval('request_log_0_id_seq'), false);
ALTER TABLE request_log_0 ALTER id DROP IDENTITY;
ALTER TABLE request_log ATTACH PARTITION request_log_0 FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

-- Rows are read and written through the parent; the gateway's role has no right to a partition.
CALL gateway_isolate('request_log');
GRANT SELECT, INSERT, UPDATE, DELETE ON request_log TO gateway_app;
REVOKE ALL ON request_log_0 FROM gateway_app;

-- The gateway's role owns nothing, so the owner adds and drops partitions for it. Both functions return false, and change
-- nothing, if another statement holds the table for longer than their timeout: the next attempt is a minute later.

-- Ends the last partition at its highest id, and adds the one for all later ids. The lock of the table waits until every
-- insertion has committed, and so no id up to the highest one is still to come.
CREATE FUNCTION gateway_continue_request_log() RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '200ms' AS $$
DECLARE
    ended regclass;
    lowest text;
    following bigint;
    added text;
BEGIN
    LOCK TABLE ONLY request_log IN ACCESS EXCLUSIVE MODE;
    SELECT inhrelid::regclass, substring(pg_get_expr(relpartbound, pg_class.oid) FROM 'FROM \((.*)\) TO') INTO ended, lowest
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = 'request_log'::regclass AND pg_get_expr(relpartbound, pg_class.oid) LIKE '%TO (MAXVALUE)';
    EXECUTE format('SELECT max(id) + 1 FROM %s', ended) INTO following;
    IF following IS NULL THEN
        RETURN false;
    END IF;
    added := 'request_log_' || following;
    EXECUTE format('ALTER TABLE request_log DETACH PARTITION %s', ended);
    EXECUTE format('ALTER TABLE request_log ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)', ended, lowest, following);
    EXECUTE format(
        'CREATE UNLOGGED TABLE %I PARTITION OF request_log FOR VALUES FROM (%s) TO (MAXVALUE)', added, following);
    CALL gateway_isolate(added);
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$$;

-- Drops a partition of the request log, unless it is the last one.
CREATE FUNCTION gateway_drop_requests(partition text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '200ms' AS $$
DECLARE
    dropped regclass;
BEGIN
    LOCK TABLE ONLY request_log IN ACCESS EXCLUSIVE MODE;
    SELECT inhrelid::regclass INTO dropped FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = 'request_log'::regclass AND relname = partition
      AND pg_get_expr(relpartbound, pg_class.oid) NOT LIKE '%TO (MAXVALUE)';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    EXECUTE format('DROP TABLE %s', dropped);
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$$;
REVOKE EXECUTE ON FUNCTION gateway_continue_request_log, gateway_drop_requests FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gateway_continue_request_log, gateway_drop_requests TO gateway_app;

-- Deletes the rows of an organization as before (0067), of a partitioned table from each of its partitions: rows of two
-- partitions may have the same place.
CREATE OR REPLACE FUNCTION gateway_delete_rows(
    owner uuid, kept_job uuid, kept_client uuid, since timestamptz, max_rows integer
) RETURNS TABLE (name text, deleted bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    owned record;
    part text;
    part_rows bigint;
BEGIN
    FOR owned IN
        SELECT tables.oid, tables.relname::text AS name, tables.relkind = 'p' AS is_partitioned,
               EXISTS (SELECT FROM pg_attribute WHERE attrelid = tables.oid AND attname = 'job_id') AS has_job
        FROM pg_class AS tables JOIN pg_attribute AS owner_column ON owner_column.attrelid = tables.oid
        WHERE tables.relnamespace = current_schema()::regnamespace AND tables.relkind IN ('r', 'p')
          AND NOT tables.relispartition
          AND owner_column.attname = 'organization_id' AND NOT owner_column.attisdropped
        ORDER BY tables.relname
    LOOP
        name := owned.name;
        deleted := 0;
        FOR part IN
            SELECT relid::regclass::text FROM pg_partition_tree(owned.oid) WHERE isleaf
            UNION ALL SELECT owned.oid::regclass::text WHERE NOT owned.is_partitioned
        LOOP
            BEGIN
                EXECUTE format(
                    'DELETE FROM %1$s WHERE ctid = ANY (ARRAY(
                         SELECT ctid FROM %1$s WHERE organization_id = $1 AND %2$s LIMIT $5))',
                    part,
                    CASE
                        WHEN owned.name = 'jobs' THEN 'id <> $2'
                        WHEN owned.name = 'client_organizations' THEN 'client_id <> $3'
                        WHEN owned.name = 'audit' THEN 'at < $4'
                        WHEN owned.has_job THEN 'job_id IS DISTINCT FROM $2'
                        ELSE 'true'
                    END
                ) USING owner, kept_job, kept_client, since, max_rows;
                GET DIAGNOSTICS part_rows = ROW_COUNT;
                deleted := deleted + part_rows;
            EXCEPTION
                WHEN foreign_key_violation THEN NULL;  -- the rows that refer to these are deleted first
                WHEN undefined_table THEN NULL;  -- the partition was dropped meanwhile
            END;
        END LOOP;
        RETURN NEXT;
    END LOOP;
END
$$;
