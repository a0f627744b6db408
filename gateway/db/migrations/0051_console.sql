-- People who are signed in to the console, and how long what the audit log tells of took.

CREATE TABLE console_sessions (
    -- SHA-256 of the cookie
    token_hash bytea PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    client_id uuid NOT NULL REFERENCES clients ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    seen_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX console_sessions_by_time ON console_sessions (seen_at);

ALTER TABLE console_sessions ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON console_sessions USING (gateway_sees(organization_id));
GRANT SELECT, INSERT, UPDATE, DELETE ON console_sessions TO gateway_app;

ALTER TABLE audit ADD COLUMN took_ms integer;
