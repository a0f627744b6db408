-- Writes whose settlement is missing: few, beside the intents of all writes, so that the filter `outcome=unknown` of the
-- audit log reads no others.

CREATE TABLE audit_unsettled (
    audit_id bigint PRIMARY KEY REFERENCES audit ON DELETE CASCADE,
    organization_id uuid NOT NULL,
    call_id uuid NOT NULL UNIQUE
);
CREATE INDEX audit_unsettled_of_organization ON audit_unsettled (organization_id);

CALL gateway_isolate('audit_unsettled');
GRANT SELECT ON audit_unsettled TO gateway_app;

INSERT INTO audit_unsettled (audit_id, organization_id, call_id)
SELECT id, organization_id, call_id FROM audit AS intent
WHERE outcome IS NULL AND call_id IS NOT NULL AND NOT EXISTS (
    SELECT FROM audit AS settled WHERE settled.call_id = intent.call_id AND settled.entry_kind = 'settlement');

-- The gateway's role adds entries to the log and has no other right to it, so the owner keeps the account.
CREATE FUNCTION gateway_note_unsettled() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.entry_kind = 'settlement' THEN
        DELETE FROM audit_unsettled WHERE call_id = NEW.call_id;
    ELSE
        INSERT INTO audit_unsettled (audit_id, organization_id, call_id)
        SELECT NEW.id, NEW.organization_id, NEW.call_id
        WHERE NOT EXISTS (SELECT FROM audit WHERE call_id = NEW.call_id AND entry_kind = 'settlement')
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER note_unsettled AFTER INSERT ON audit FOR EACH ROW
    WHEN (NEW.call_id IS NOT NULL AND (NEW.entry_kind = 'settlement' OR NEW.outcome IS NULL))
    EXECUTE FUNCTION gateway_note_unsettled();
