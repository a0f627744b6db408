-- Issuers whose tokens a client exchanges for a token of the person whom they name.

CREATE TABLE trusted_issuers (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    -- `iss` of its tokens, exactly
    issuer text NOT NULL,
    -- `aud` of its ID tokens
    audience text NOT NULL,
    -- the only clients that may exchange its tokens; null is all with the scope delegate
    client_ids uuid[],
    -- the claim with the names of the person's groups
    groups_claim text,
    -- whether a person who is not known is added
    create_people boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by uuid,
    UNIQUE (organization_id, issuer)
);
CALL gateway_isolate('trusted_issuers');
GRANT SELECT, INSERT, UPDATE, DELETE ON trusted_issuers TO gateway_app;

-- Assertions that were used, each once for its issuer: SHA-256 of `jti`, until the assertion has expired.
CREATE TABLE used_assertions (
    issuer text NOT NULL,
    jti_hash bytea NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (issuer, jti_hash)
);
CREATE INDEX used_assertions_by_expiry ON used_assertions (expires_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON used_assertions TO gateway_app;

-- A session that came from an issuer's token ends with the trust in the issuer.
ALTER TABLE person_sessions ADD COLUMN issuer_id uuid REFERENCES trusted_issuers ON DELETE CASCADE;
CREATE INDEX person_sessions_of_issuer ON person_sessions (issuer_id) WHERE issuer_id IS NOT NULL;
