-- Whose copy it is: the owner of the connector, who never changes. Records and words have the owner themselves: a look-up for
-- each row doubled the time of a search.

CREATE FUNCTION gateway_refuse_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the owner of a connector does not change';
END
$$;
CREATE TRIGGER keep_owner BEFORE UPDATE OF owner_id ON connectors
    FOR EACH ROW WHEN (NEW.owner_id IS DISTINCT FROM OLD.owner_id) EXECUTE FUNCTION gateway_refuse_owner();

-- As in `connectors`: zeros for a shared one. New rows have no default, so that a row without an owner is an error.
ALTER TABLE context_entities ADD COLUMN owner_key uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';
ALTER TABLE context_records ADD COLUMN owner_key uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';
ALTER TABLE context_words ADD COLUMN owner_key uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';
ALTER TABLE context_entities ALTER COLUMN owner_key DROP DEFAULT;
ALTER TABLE context_records ALTER COLUMN owner_key DROP DEFAULT;
ALTER TABLE context_words ALTER COLUMN owner_key DROP DEFAULT;

CREATE FUNCTION context_set_owner_of_entity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.owner_key := (SELECT owner_key FROM connectors WHERE id = NEW.connector_id);
    RETURN NEW;
END
$$;
CREATE TRIGGER set_owner BEFORE INSERT ON context_entities
    FOR EACH ROW EXECUTE FUNCTION context_set_owner_of_entity();

CREATE FUNCTION context_set_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.owner_key := (SELECT owner_key FROM context_entities WHERE id = NEW.entity_id);
    RETURN NEW;
END
$$;
CREATE TRIGGER set_owner BEFORE INSERT ON context_records FOR EACH ROW EXECUTE FUNCTION context_set_owner();
CREATE TRIGGER set_owner BEFORE INSERT ON context_words FOR EACH ROW EXECUTE FUNCTION context_set_owner();

-- A worker of an earlier version, which runs beside newer ones during an upgrade, does not see the rows that it should
-- remove before the connector, and with it the entity.
CREATE FUNCTION context_remove_rows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    person text := COALESCE(current_setting('gateway.person', true), '');
BEGIN
    PERFORM set_config('gateway.person', '*', true);
    DELETE FROM context_records WHERE entity_id = OLD.id;
    DELETE FROM context_words WHERE entity_id = OLD.id;
    DELETE FROM context_pending_words WHERE entity_id = OLD.id;
    DELETE FROM context_marks WHERE entity_id = OLD.id;
    DELETE FROM context_terms WHERE entity_id = OLD.id;
    PERFORM set_config('gateway.person', person, true);
    RETURN NULL;
END
$$;
CREATE TRIGGER remove_rows AFTER DELETE ON context_entities FOR EACH ROW EXECUTE FUNCTION context_remove_rows();
