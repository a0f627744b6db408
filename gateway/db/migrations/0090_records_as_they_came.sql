-- What is found is handed out as the text it came as: writing `jsonb` as text took more than half of the time of a page.
-- `text_digest` is the digest of that text. Where it is another than the record's, a version that knew no texts wrote
-- the record, and a full sweep that meets it writes it again.
ALTER TABLE context_records ADD COLUMN json_text text, ADD COLUMN text_digest bigint;

-- Long records are unpacked several times as fast where the server was built with lz4.
DO $$
BEGIN
    ALTER TABLE context_records ALTER COLUMN document SET COMPRESSION lz4, ALTER COLUMN json_text SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END $$;
