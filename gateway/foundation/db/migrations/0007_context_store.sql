-- The synchronized copies of applications' records, laid out so that every connector kind shares one set of indexes.

-- One case folding on every server (see gateway/context_store/tokenizer.py): the simple mappings of Unicode.
DO $$
BEGIN
    IF current_setting('server_version_num')::int >= 170000 THEN
        CREATE COLLATION context_fold (provider = builtin, locale = 'C.UTF-8');
    ELSE
        CREATE COLLATION context_fold (provider = libc, locale = 'C.UTF-8');
    END IF;
END $$;

CREATE FUNCTION context_fold(value text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN translate(lower(value COLLATE context_fold), 'ς', 'σ');

-- A scalar only when it has the declared type; anything else is missing.
CREATE FUNCTION context_text(value jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_typeof(value) = 'string' THEN value #>> '{}' END;

CREATE FUNCTION context_numeric(value jsonb) RETURNS numeric
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_typeof(value) = 'number' THEN value::numeric END;

-- Numbers sort as doubles. A number that no double can hold must not stop a whole synchronization.
CREATE FUNCTION context_double(value jsonb) RETURNS double precision
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN context_numeric(value) > 1e300 THEN 1e300
        WHEN context_numeric(value) < -1e300 THEN -1e300
        WHEN abs(context_numeric(value)) < 1e-300 THEN 0
        ELSE context_numeric(value)::double precision
    END;

CREATE FUNCTION context_boolean(value jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_typeof(value) = 'boolean' THEN value::boolean END;

-- One row per entity of a connector: what is loaded, how it is laid out, how the synchronization stands.
CREATE TABLE context_entities (
    -- short, because it leads every index of the records
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    connector_id uuid NOT NULL REFERENCES connectors ON DELETE CASCADE,
    organization_id uuid NOT NULL,
    entity text NOT NULL,
    -- which fields have a key column or words; fixed when the entity is registered
    layout jsonb NOT NULL,
    -- words that a good part of the records hold, and which part; measured after a load
    common jsonb NOT NULL DEFAULT '{}',
    records bigint NOT NULL DEFAULT 0,
    -- the full sweep that runs or ran last
    generation bigint NOT NULL DEFAULT 0,
    -- where the next incremental read starts, and where a full sweep that was interrupted goes on
    cursor text,
    sweep_cursor text,
    -- the job that synchronizes the entity, for as long as that job has not ended
    held_by uuid,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'syncing', 'ready', 'failed')),
    error jsonb,
    started_at timestamptz,
    last_synced_at timestamptz,
    next_sync_at timestamptz DEFAULT now(),
    UNIQUE (connector_id, entity)
);
CREATE INDEX context_entities_due ON context_entities (next_sync_at);

-- No foreign key: checking it would cost every bulk load. A connector's records are removed in batches before it is.
CREATE TABLE context_records (
    entity_id integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    organization_id uuid NOT NULL,
    document jsonb NOT NULL,
    -- of the document's bytes as they came: an unchanged record costs one look-up, no write
    digest bigint,
    generation bigint NOT NULL,
    -- when the application was asked: an older answer never overwrites a newer one
    observed_at timestamptz NOT NULL,
    deleted_at timestamptz,
    -- the sort keys of two string fields and one number field
    key_a text COLLATE "C",
    key_b text COLLATE "C",
    key_n double precision,
    -- the text that search returns: writing `jsonb` as text took more than half of the time of a page
    json_text text,
    PRIMARY KEY (entity_id, id)
);
CREATE INDEX context_records_key_a ON context_records (entity_id, key_a, id) WHERE deleted_at IS NULL;
CREATE INDEX context_records_key_b ON context_records (entity_id, key_b, id) WHERE deleted_at IS NULL;
CREATE INDEX context_records_key_n ON context_records (entity_id, key_n, id) WHERE deleted_at IS NULL;

-- The records that a full sweep met unchanged; marking them here spares rewriting them.
CREATE TABLE context_marks (
    entity_id integer NOT NULL,
    generation bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    organization_id uuid NOT NULL,
    PRIMARY KEY (entity_id, generation, id)
);

-- Long records decompress several times as fast where the server was built with lz4.
DO $$
BEGIN
    ALTER TABLE context_records ALTER COLUMN document SET COMPRESSION lz4, ALTER COLUMN json_text SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END $$;

-- Words are stored apart from the records: a record can be searched as soon as it is written, and a walk through records
-- does not read words.
CREATE TABLE context_words (
    entity_id integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    organization_id uuid NOT NULL,
    -- of the document whose words they are; they count only as long as it is the record's
    digest bigint NOT NULL,
    -- words as entity/field/word: one index for all tenants in which no tenant pays for another
    terms tsvector NOT NULL,
    PRIMARY KEY (entity_id, id)
);
-- Words wait in a list until there are 16 MiB of them, or until `context_settle` files them at the end of a load: filing
-- many at once is what makes loading fast.
CREATE INDEX context_words_terms ON context_words USING gin (terms) WITH (gin_pending_list_limit = 16384);

-- The records whose words are still to come, in the batches in which they were written. Searches read these whole.
CREATE TABLE context_pending_words (
    entity_id integer NOT NULL,
    batch bigint GENERATED ALWAYS AS IDENTITY,
    organization_id uuid NOT NULL,
    ids text[] NOT NULL,
    PRIMARY KEY (entity_id, batch)
);

-- The dictionary of each entity's terms, so that a search for a part of a word (`like`, `contains`, `endswith`) reads the
-- distinct words instead of all records, and then asks the word index for the records that have them.
CREATE TABLE context_terms (
    entity_id integer NOT NULL,
    -- entity/field/word, as in context_words.terms; words of three characters or more
    term text COLLATE "C" NOT NULL,
    organization_id uuid NOT NULL,
    PRIMARY KEY (entity_id, term)
);

-- pg_trgm is not on every server. Each trigram begins like its term, so that no search meets another tenant's words.
CREATE FUNCTION context_trigrams(term text) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    word text := split_part(term, '/', 3);
    prefix text := left(term, -length(word));
    found text[] := '{}';
BEGIN
    FOR place IN 1 .. length(word) - 2 LOOP
        found[place] := prefix || substr(word, place, 3);
    END LOOP;
    RETURN found;
END $$;
-- A dictionary grows by thousands of terms at a time: their trigrams wait in a list and are filed together.
CREATE INDEX context_terms_trigrams ON context_terms USING gin (context_trigrams(term))
    WITH (fastupdate = on, gin_pending_list_limit = 4096);

CALL gateway_isolate('context_entities');
CALL gateway_isolate('context_records');
CALL gateway_isolate('context_marks');
CALL gateway_isolate('context_words');
CALL gateway_isolate('context_pending_words');
CALL gateway_isolate('context_terms');
ALTER TABLE context_entities FORCE ROW LEVEL SECURITY;
ALTER TABLE context_records FORCE ROW LEVEL SECURITY;
ALTER TABLE context_marks FORCE ROW LEVEL SECURITY;
ALTER TABLE context_words FORCE ROW LEVEL SECURITY;
ALTER TABLE context_pending_words FORCE ROW LEVEL SECURITY;
ALTER TABLE context_terms FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE
    ON context_entities, context_records, context_marks, context_words, context_pending_words TO gateway_app;
GRANT SELECT, INSERT, DELETE ON context_terms TO gateway_app;

-- Under row security Postgres uses an index only for operators that are marked leakproof; `@@` is not, so the word
-- index would be lost. This role may see all rows, and is used only by the functions below, which look only into an
-- entity that the caller's own policy lets it see and return nothing but ids and terms. The ids are looked up as the caller.
DO $$
BEGIN
    CREATE ROLE gateway_context_search NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;
END $$;
DO $$
BEGIN
    EXECUTE format('GRANT gateway_context_search TO %I', current_user);
EXCEPTION WHEN OTHERS THEN
    -- a superuser may become any role without being a member
    NULL;
END $$;
GRANT SELECT ON context_entities, context_words, context_pending_words, context_terms TO gateway_context_search;
CREATE POLICY search ON context_words FOR SELECT TO gateway_context_search USING (true);
CREATE POLICY search ON context_pending_words FOR SELECT TO gateway_context_search USING (true);
CREATE POLICY search ON context_terms FOR SELECT TO gateway_context_search USING (true);

-- Files the words and trigrams that wait in lists; called at the end of a load.
CREATE FUNCTION context_settle() RETURNS bigint
    LANGUAGE sql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$ SELECT gin_clean_pending_list('context_words_terms') + gin_clean_pending_list('context_terms_trigrams') $$;

-- The ids of the records whose words match or are still to come, or NULL when there are more than `most`. `entity_id + 0`
-- keeps the planner from reading the entity from end to end; so does saying nothing of tombstones, which have no words.
-- The settings leave it one plan, made once instead of at every call.
CREATE FUNCTION context_candidates(asked_entity integer, asked_terms tsquery, most integer) RETURNS text[]
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
        SELECT unnest(ids) FROM context_pending_words WHERE entity_id = asked_entity
        LIMIT most + 1) AS matching;
    RETURN CASE WHEN cardinality(found) <= most THEN found END;
END $$;

-- For each prefix and part of a word, the terms that have it, or NULL where they are more than `most`. No row at all when
-- the entity is not there for the caller. Why it is not the caller who reads: see context_candidates.
CREATE FUNCTION context_terms_containing(asked_entity integer, prefixes text[], parts text[], most integer)
    RETURNS TABLE (prefix text, part text, terms text[])
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path FROM CURRENT
    SET enable_seqscan = off SET enable_indexscan = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM context_entities AS e WHERE e.id = asked_entity) THEN
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
        SELECT FROM context_words AS w
        WHERE w.terms @@ ('''' || t.term || '''')::tsquery AND w.entity_id + 0 = asked_entity
    )
    FROM context_terms AS t
    WHERE t.entity_id = asked_entity AND t.term > after
      AND EXISTS (SELECT FROM context_entities AS e WHERE e.id = asked_entity)
    ORDER BY t.term LIMIT most
$$;

-- The owner of a function must be able to create in its schema; this role only for the moment.
DO $$
BEGIN
    EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %I TO gateway_context_search', current_schema());
    ALTER FUNCTION context_candidates(integer, tsquery, integer) OWNER TO gateway_context_search;
    ALTER FUNCTION context_terms_containing(integer, text[], text[], integer) OWNER TO gateway_context_search;
    ALTER FUNCTION context_terms_in_use(integer, text, integer) OWNER TO gateway_context_search;
    EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM gateway_context_search', current_schema());
END $$;
REVOKE EXECUTE ON FUNCTION context_candidates(integer, tsquery, integer), context_settle(),
    context_terms_containing(integer, text[], text[], integer), context_terms_in_use(integer, text, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION context_candidates(integer, tsquery, integer), context_settle(),
    context_terms_containing(integer, text[], text[], integer), context_terms_in_use(integer, text, integer)
    TO gateway_app;
