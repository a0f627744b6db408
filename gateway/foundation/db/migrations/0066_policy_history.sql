-- What each client has called by the minute, for policies that name it. Only organizations with such policies have rows.
CREATE TABLE policy_history (
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    client_id uuid NOT NULL REFERENCES clients ON DELETE CASCADE,
    minute timestamptz NOT NULL,
    -- `calls`, `writes`, or the operation and the param that is summed: `stripe.refunds.create:amount`
    name text NOT NULL,
    total numeric NOT NULL,
    PRIMARY KEY (organization_id, client_id, minute, name)
) WITH (fillfactor = 50);

CREATE INDEX policy_history_minute ON policy_history (minute);
CALL gateway_isolate('policy_history');
GRANT SELECT, INSERT, UPDATE, DELETE ON policy_history TO gateway_app;

ALTER TABLE jobs ADD COLUMN is_counted boolean NOT NULL DEFAULT true;
