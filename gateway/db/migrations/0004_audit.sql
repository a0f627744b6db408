-- Who did what, when, with which outcome; never params, never secrets.

CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id uuid NOT NULL,
    at timestamptz NOT NULL,
    actor uuid,
    connector_id uuid,
    what text NOT NULL,
    outcome text NOT NULL,
    intent text,
    request_id text
);
CREATE INDEX audit_by_time ON audit (organization_id, at DESC, id DESC);

ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON audit USING (gateway_sees(organization_id));
GRANT SELECT, INSERT ON audit TO gateway_app;
