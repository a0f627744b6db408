-- The second lock of the copy of a personal connector: a session sees it for its owner, and for the gateway's own work.

-- An owner of the tables that is no superuser is held to their policies.
SET LOCAL gateway.tenant = '*';
UPDATE context_entities AS e SET owner_key = c.owner_key
FROM connectors AS c WHERE c.id = e.connector_id AND c.owner_id IS NOT NULL;
UPDATE context_records AS r SET owner_key = e.owner_key
FROM context_entities AS e WHERE e.id = r.entity_id AND e.owner_key <> r.owner_key;
UPDATE context_words AS w SET owner_key = e.owner_key
FROM context_entities AS e WHERE e.id = w.entity_id AND e.owner_key <> w.owner_key;

-- Of its tenant's copies, a session sees those of shared connectors and of its person's own: all of them if the person is '*',
-- the shared ones only if the setting is missing. It is one policy with one CASE, which the planner takes for true half of
-- the time; with another it would expect half as many rows. A setting that is read in a subquery is read once, and only when
-- a row needs it.
CREATE PROCEDURE context_isolate(name text, is_visible text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($policy$
        ALTER POLICY tenant ON %I USING (
            CASE WHEN organization_id = (SELECT CASE WHEN current_setting('gateway.tenant', true) <> '*'
                THEN NULLIF(current_setting('gateway.tenant', true), '')::uuid END) THEN %s
            ELSE current_setting('gateway.tenant', true) = '*' END)
    $policy$, name, is_visible);
END
$$;
CREATE PROCEDURE context_isolate_owned(name text) LANGUAGE sql AS $$
    CALL context_isolate(name, $visible$
        owner_key = '00000000-0000-0000-0000-000000000000'
        OR owner_key = (SELECT CASE WHEN current_setting('gateway.person', true) <> '*'
            THEN NULLIF(current_setting('gateway.person', true), '')::uuid END)
        OR current_setting('gateway.person', true) = '*'
    $visible$)
$$;
CREATE PROCEDURE context_isolate_with_entity(name text) LANGUAGE sql AS $$
    CALL context_isolate(name, $visible$
        current_setting('gateway.person', true) = '*'
        OR EXISTS (SELECT FROM context_entities AS e WHERE e.id = entity_id)
    $visible$)
$$;

CALL context_isolate_owned('context_entities');
CALL context_isolate_owned('context_records');
CALL context_isolate_owned('context_words');
-- No search reads these tables itself.
CALL context_isolate_with_entity('context_marks');
CALL context_isolate_with_entity('context_pending_words');
CALL context_isolate_with_entity('context_terms');
