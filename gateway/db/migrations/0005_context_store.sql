-- The synchronized copies of applications' records, laid out so that every connector kind shares one set of indexes.

-- One case folding on every server (see gateway/context_store/words.py): the simple mappings of Unicode.
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
    -- words as entity/field/word: one index for all tenants in which no tenant pays for another
    terms tsvector,
    PRIMARY KEY (entity_id, id)
);
CREATE INDEX context_records_key_a ON context_records (entity_id, key_a, id) WHERE deleted_at IS NULL;
CREATE INDEX context_records_key_b ON context_records (entity_id, key_b, id) WHERE deleted_at IS NULL;
CREATE INDEX context_records_key_n ON context_records (entity_id, key_n, id) WHERE deleted_at IS NULL;
-- Words wait in a list until there are 16 MiB of them, or until `context_settle` files them at the end of a load: filing
-- many at once is what makes loading fast.
CREATE INDEX context_records_terms ON context_records USING gin (terms) WITH (gin_pending_list_limit = 16384);

-- The records that a full sweep met unchanged; marking them here spares rewriting them.
CREATE TABLE context_marks (
    entity_id integer NOT NULL,
    generation bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    organization_id uuid NOT NULL,
    PRIMARY KEY (entity_id, generation, id)
);

ALTER TABLE context_entities ENABLE ROW LEVEL SECURITY;
ALTER TABLE context_entities FORCE ROW LEVEL SECURITY;
ALTER TABLE context_records ENABLE ROW LEVEL SECURITY;
ALTER TABLE context_records FORCE ROW LEVEL SECURITY;
ALTER TABLE context_marks ENABLE ROW LEVEL SECURITY;
ALTER TABLE context_marks FORCE ROW LEVEL SECURITY;

-- As `gateway_sees`, but asked once per statement instead of once per row, and in a form (CASE) that the planner takes
-- for true half of the time: it takes an equality for a rare case, and then sorts whole entities for fear of a long walk.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{context_entities,context_records,context_marks}'::text[] LOOP
        EXECUTE format($policy$
            CREATE POLICY tenant ON %I USING (
                CASE WHEN (SELECT current_setting('gateway.tenant', true) = '*') THEN true
                ELSE organization_id = (SELECT CASE WHEN current_setting('gateway.tenant', true) <> '*'
                    THEN NULLIF(current_setting('gateway.tenant', true), '')::uuid END) END)
        $policy$, name);
    END LOOP;
END $$;

GRANT SELECT, INSERT, UPDATE, DELETE ON context_entities, context_records, context_marks TO gateway_app;

-- Under row security Postgres uses an index only for operators that are marked leakproof; `@@` is not, so the word
-- index would be lost. This role may see all rows, and is used only by the function below, which looks only into an
-- entity that the caller's own policy lets it see and returns nothing but ids. The ids are looked up as the caller.
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
GRANT SELECT ON context_entities, context_records TO gateway_context_search;
CREATE POLICY search ON context_records FOR SELECT TO gateway_context_search USING (true);

CREATE FUNCTION context_settle() RETURNS bigint
    LANGUAGE sql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$ SELECT gin_clean_pending_list('context_records_terms') $$;

-- The ids of the records whose words match, or NULL when there are more than `most`. `entity_id + 0` keeps the planner
-- from reading the entity from end to end; so does saying nothing of tombstones, which have no terms. The settings leave
-- it one plan, made once instead of at every call.
CREATE FUNCTION context_candidates(asked_entity integer, asked_terms tsquery, most integer) RETURNS text[]
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path FROM CURRENT
    SET enable_seqscan = off SET enable_indexscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    found text[];
BEGIN
    SELECT COALESCE(array_agg(id), '{}') INTO found FROM (
        SELECT id FROM context_records
        WHERE terms @@ asked_terms AND entity_id + 0 = asked_entity
          AND EXISTS (SELECT FROM context_entities WHERE context_entities.id = asked_entity)
        LIMIT most + 1) AS matching;
    RETURN CASE WHEN cardinality(found) <= most THEN found END;
END $$;

-- Whoever owns a function must be able to create in its schema; this role only for the moment.
DO $$
BEGIN
    EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %I TO gateway_context_search', current_schema());
    ALTER FUNCTION context_candidates(integer, tsquery, integer) OWNER TO gateway_context_search;
    EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM gateway_context_search', current_schema());
END $$;
REVOKE EXECUTE ON FUNCTION context_candidates(integer, tsquery, integer), context_settle() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION context_candidates(integer, tsquery, integer), context_settle() TO gateway_app;
