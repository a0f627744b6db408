-- Webhooks in: where applications send notices of changes, one hook for each connector.

CREATE TABLE inbound_hooks (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    connector_id uuid NOT NULL UNIQUE REFERENCES connectors ON DELETE CASCADE,
    -- until when a handshake may bring a secret
    handshake_until timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),

    -- the secrets that notices are signed with, the newest first
    key_id text NOT NULL,
    wrapped_key bytea NOT NULL,
    sealed bytea NOT NULL
);

-- The notices of the last days, so that a repeated one is known.
CREATE TABLE inbound_notices (
    hook_id uuid NOT NULL REFERENCES inbound_hooks ON DELETE CASCADE,
    -- SHA-256 of the application's id for the delivery, or of what it signed
    digest bytea NOT NULL,
    organization_id uuid NOT NULL,
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (hook_id, digest)
);
CREATE INDEX inbound_notices_by_age ON inbound_notices (received_at);
CREATE INDEX inbound_notices_of_hook ON inbound_notices (hook_id, received_at DESC);

-- Records and entities that notices were about and that were not read since.
CREATE TABLE inbound_changes (
    connector_id uuid NOT NULL REFERENCES connectors ON DELETE CASCADE,
    entity text NOT NULL,
    -- empty for the entity as a whole
    record_id text NOT NULL,
    organization_id uuid NOT NULL,
    noticed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (connector_id, entity, record_id)
);

CALL gateway_isolate('inbound_hooks');
CALL gateway_isolate('inbound_notices');
CALL gateway_isolate('inbound_changes');
GRANT SELECT, INSERT, UPDATE, DELETE ON inbound_hooks, inbound_notices, inbound_changes TO gateway_app;
