-- Entries of the audit log form a hash chain for each organization, which one worker continues shortly after their commit.

-- The transaction that added the entry: once all earlier ones have ended, no entry appears before it any longer. Entries of
-- earlier versions have none, and are not in the chain.
ALTER TABLE audit ADD COLUMN xact xid8;
ALTER TABLE audit ALTER COLUMN xact SET DEFAULT pg_current_xact_id();
CREATE INDEX audit_by_transaction ON audit (xact, id) WHERE xact IS NOT NULL;

CREATE TABLE audit_chain (
    organization_id uuid NOT NULL,
    seq bigint NOT NULL,
    audit_id bigint NOT NULL UNIQUE REFERENCES audit ON DELETE CASCADE,
    hash text NOT NULL,
    previous text NOT NULL,
    -- JSON: the names of that time, `{application, actor}`
    names text NOT NULL,
    PRIMARY KEY (organization_id, seq)
);

-- The end of each organization's chain, which stays when entries are pruned.
CREATE TABLE audit_heads (
    organization_id uuid PRIMARY KEY,
    seq bigint NOT NULL,
    hash text NOT NULL
);

CREATE TABLE audit_checkpoints (
    organization_id uuid NOT NULL,
    seq bigint NOT NULL,
    -- the line as it is exported, signed
    line text NOT NULL,
    PRIMARY KEY (organization_id, seq)
);

-- How far entries are in their chains, over all organizations: a single row.
CREATE TABLE audit_sealed (
    is_row boolean PRIMARY KEY DEFAULT true CHECK (is_row),
    xact xid8 NOT NULL,
    audit_id bigint NOT NULL
);
INSERT INTO audit_sealed (xact, audit_id) VALUES ('0', 0);

CALL gateway_isolate('audit_chain');
CALL gateway_isolate('audit_heads');
CALL gateway_isolate('audit_checkpoints');
GRANT SELECT, INSERT ON audit_chain, audit_checkpoints TO gateway_app;
GRANT SELECT, INSERT, UPDATE ON audit_heads TO gateway_app;
GRANT SELECT, UPDATE ON audit_sealed TO gateway_app;
