-- What an entry changed: the kind of the connector, and the names of the members that were written, never their values.

ALTER TABLE audit ADD COLUMN kind text, ADD COLUMN changed text[];
CREATE INDEX audit_of_operation ON audit (organization_id, what, at DESC, id DESC);
-- Most entries are of these two outcomes, which the index by time serves.
CREATE INDEX audit_of_outcome ON audit (organization_id, outcome, at DESC, id DESC)
    WHERE outcome NOT IN ('succeeded', 'accepted');
CREATE INDEX audit_of_request ON audit (organization_id, request_id) WHERE request_id IS NOT NULL;
