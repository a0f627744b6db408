-- Uploads that a caller may resume: each belongs to a session that the application holds open.

CREATE TABLE uploads (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    connector_id uuid NOT NULL REFERENCES connectors ON DELETE CASCADE,
    entity text NOT NULL,
    -- bytes of the whole file
    size bigint NOT NULL,
    -- counts the requests that sent bytes: of two at a time only the later one goes on
    fence integer NOT NULL DEFAULT 0,
    is_complete boolean NOT NULL DEFAULT false,
    -- the params and the URL of the application's session; once it is complete the application's answer
    key_id text NOT NULL,
    wrapped_key bytea NOT NULL,
    sealed bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX uploads_by_expiry ON uploads (expires_at);
CREATE INDEX uploads_of_connector ON uploads (connector_id);

CALL gateway_isolate('uploads');
GRANT SELECT, INSERT, UPDATE, DELETE ON uploads TO gateway_app;
