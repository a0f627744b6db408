-- Words lie apart from the records: a record is there as soon as it is read, its words come right behind, and a walk
-- through records does not read words. `context_records.terms` is only read: it holds the words of records that an
-- earlier version wrote.

CREATE TABLE context_words (
    entity_id integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    organization_id uuid NOT NULL,
    -- of the document whose words they are; they count only as long as it is the record's
    digest bigint NOT NULL,
    terms tsvector NOT NULL,
    PRIMARY KEY (entity_id, id)
);
CREATE INDEX context_words_terms ON context_words USING gin (terms) WITH (gin_pending_list_limit = 16384);

-- The records whose words are still to come, in the batches in which they were written. Searches read these whole.
CREATE TABLE context_pending_words (
    entity_id integer NOT NULL,
    batch bigint GENERATED ALWAYS AS IDENTITY,
    organization_id uuid NOT NULL,
    ids text[] NOT NULL,
    PRIMARY KEY (entity_id, batch)
);

-- Tenants as for the records (see 0005_context_store.sql).
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{context_words,context_pending_words}'::text[] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format($policy$
            CREATE POLICY tenant ON %I USING (
                CASE WHEN (SELECT current_setting('gateway.tenant', true) = '*') THEN true
                ELSE organization_id = (SELECT CASE WHEN current_setting('gateway.tenant', true) <> '*'
                    THEN NULLIF(current_setting('gateway.tenant', true), '')::uuid END) END)
        $policy$, name);
        EXECUTE format('CREATE POLICY search ON %I FOR SELECT TO gateway_context_search USING (true)', name);
        EXECUTE format('GRANT SELECT ON %I TO gateway_context_search', name);
    END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON context_words, context_pending_words TO gateway_app;

CREATE OR REPLACE FUNCTION context_settle() RETURNS bigint
    LANGUAGE sql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$ SELECT gin_clean_pending_list('context_words_terms') + gin_clean_pending_list('context_records_terms') $$;

-- The ids of the records whose words match or are still to come, or NULL when there are more than `most`. Why it is not
-- the caller who reads, and why `entity_id + 0`: see 0005_context_store.sql.
CREATE OR REPLACE FUNCTION context_candidates(asked_entity integer, asked_terms tsquery, most integer) RETURNS text[]
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path FROM CURRENT
    SET enable_seqscan = off SET enable_indexscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    found text[];
BEGIN
    IF NOT EXISTS (SELECT FROM context_entities WHERE context_entities.id = asked_entity) THEN
        RETURN '{}';
    END IF;
    SELECT COALESCE(array_agg(id), '{}') INTO found FROM (
        SELECT id FROM context_words WHERE terms @@ asked_terms AND entity_id + 0 = asked_entity
        UNION ALL
        SELECT id FROM context_records WHERE terms @@ asked_terms AND entity_id + 0 = asked_entity
        UNION ALL
        SELECT unnest(ids) FROM context_pending_words WHERE entity_id = asked_entity
        LIMIT most + 1) AS matching;
    RETURN CASE WHEN cardinality(found) <= most THEN found END;
END $$;

CREATE OR REPLACE FUNCTION context_terms_in_use(asked_entity integer, after text, most integer)
    RETURNS TABLE (term text, is_used boolean)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path FROM CURRENT
    SET enable_seqscan = off
AS $$
    SELECT t.term, EXISTS (
        SELECT FROM context_words AS w
        WHERE w.terms @@ ('''' || t.term || '''')::tsquery AND w.entity_id + 0 = asked_entity
    ) OR EXISTS (
        SELECT FROM context_records AS r
        WHERE r.terms @@ ('''' || t.term || '''')::tsquery AND r.entity_id + 0 = asked_entity)
    FROM context_terms AS t
    WHERE t.entity_id = asked_entity AND t.term > after
      AND EXISTS (SELECT FROM context_entities AS e WHERE e.id = asked_entity)
    ORDER BY t.term LIMIT most
$$;
