-- The dictionary of each entity's terms, so that a search for a part of a word (`like`, `contains`, `endswith`) looks
-- into the distinct words instead of all records, and then asks the word index for those that have it.

CREATE TABLE context_terms (
    entity_id integer NOT NULL,
    -- entity/field/word, as in context_records.terms; words of three characters or more
    term text COLLATE "C" NOT NULL,
    organization_id uuid NOT NULL,
    PRIMARY KEY (entity_id, term)
);

ALTER TABLE context_terms ENABLE ROW LEVEL SECURITY;
ALTER TABLE context_terms FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON context_terms USING (
    CASE WHEN (SELECT current_setting('gateway.tenant', true) = '*') THEN true
    ELSE organization_id = (SELECT CASE WHEN current_setting('gateway.tenant', true) <> '*'
        THEN NULLIF(current_setting('gateway.tenant', true), '')::uuid END) END);
GRANT SELECT, INSERT, DELETE ON context_terms TO gateway_app;
GRANT SELECT ON context_terms TO gateway_context_search;
CREATE POLICY search ON context_terms FOR SELECT TO gateway_context_search USING (true);

-- pg_trgm is not on every server. Each trigram begins like its term, so that no tenant's words are met in another's search.
CREATE FUNCTION context_trigrams(term text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT left(term, -length(word)) || substr(word, place, 3)
                 FROM split_part(term, '/', 3) AS word, generate_series(1, length(word) - 2) AS place);
CREATE INDEX context_terms_trigrams ON context_terms USING gin (context_trigrams(term)) WITH (fastupdate = off);

-- Of the document whose terms are in the dictionary. Where it is another than the record's, a version that knew no
-- dictionary wrote the record; the index holds nothing else and so is empty in the end.
ALTER TABLE context_records ADD COLUMN terms_digest bigint;
CREATE INDEX context_records_not_in_dictionary ON context_records (entity_id)
    WHERE deleted_at IS NULL AND terms_digest IS DISTINCT FROM digest;

-- For each prefix and part of a word, the terms that have it, or NULL where they are more than `most`. No row at all when
-- the dictionary cannot tell, or the entity is not there for the caller. Why it is not the caller who reads: see
-- context_candidates.
CREATE FUNCTION context_terms_containing(asked_entity integer, prefixes text[], parts text[], most integer)
    RETURNS TABLE (prefix text, part text, terms text[])
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path FROM CURRENT
    SET enable_seqscan = off SET enable_indexscan = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM context_entities AS e WHERE e.id = asked_entity)
        OR EXISTS (SELECT FROM context_records AS r WHERE r.entity_id = asked_entity AND r.deleted_at IS NULL
                   AND r.terms_digest IS DISTINCT FROM r.digest) THEN
        RETURN;
    END IF;
    FOR place IN 1 .. cardinality(parts) LOOP
        prefix := prefixes[place];
        part := parts[place];
        SELECT COALESCE(array_agg(matching.term), '{}') INTO terms FROM (
            SELECT t.term FROM context_terms AS t
            WHERE context_trigrams(t.term) @> context_trigrams(prefix || part) AND t.entity_id + 0 = asked_entity
              AND position(part IN split_part(t.term, '/', 3)) > 0
            LIMIT most + 1) AS matching;
        IF cardinality(terms) > most THEN
            terms := NULL;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

-- The next terms of the dictionary in order, and whether any record still has them.
CREATE FUNCTION context_terms_in_use(asked_entity integer, after text, most integer)
    RETURNS TABLE (term text, is_used boolean)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path FROM CURRENT
    SET enable_seqscan = off
AS $$
    SELECT t.term, EXISTS (
        SELECT FROM context_records AS r
        WHERE r.terms @@ ('''' || t.term || '''')::tsquery AND r.entity_id + 0 = asked_entity)
    FROM context_terms AS t
    WHERE t.entity_id = asked_entity AND t.term > after
      AND EXISTS (SELECT FROM context_entities AS e WHERE e.id = asked_entity)
    ORDER BY t.term LIMIT most
$$;

-- Whoever owns a function must be able to create in its schema; this role only for the moment.
DO $$
BEGIN
    EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %I TO gateway_context_search', current_schema());
    ALTER FUNCTION context_terms_containing(integer, text[], text[], integer) OWNER TO gateway_context_search;
    ALTER FUNCTION context_terms_in_use(integer, text, integer) OWNER TO gateway_context_search;
    EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM gateway_context_search', current_schema());
END $$;
REVOKE EXECUTE ON FUNCTION context_terms_containing(integer, text[], text[], integer),
    context_terms_in_use(integer, text, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION context_terms_containing(integer, text[], text[], integer),
    context_terms_in_use(integer, text, integer) TO gateway_app;
