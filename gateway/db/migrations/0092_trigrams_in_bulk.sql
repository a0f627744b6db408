-- A dictionary grows by thousands of terms at a time while records are read: their trigrams wait in a list and are filed
-- together, as the words are. Searches read the list meanwhile.
ALTER INDEX context_terms_trigrams SET (fastupdate = on, gin_pending_list_limit = 4096);

-- The same trigrams in half the time.
CREATE OR REPLACE FUNCTION context_trigrams(term text) RETURNS text[]
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

CREATE OR REPLACE FUNCTION context_settle() RETURNS bigint
    LANGUAGE sql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$ SELECT gin_clean_pending_list('context_words_terms') + gin_clean_pending_list('context_records_terms')
              + gin_clean_pending_list('context_terms_trigrams') $$;
