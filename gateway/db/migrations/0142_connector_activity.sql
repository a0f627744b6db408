-- Failures of one connector in the last hour are counted without reading its successes.
CREATE INDEX audit_failures_of_connector ON audit (organization_id, connector_id, at DESC)
    WHERE outcome NOT IN ('succeeded', 'accepted');
