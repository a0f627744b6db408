-- The claim by which an issuer names people, subjects that are unique within an organization, and what belongs to a
-- session for a person.

-- Microsoft Entra has another `sub` for each application, and one `oid`.
ALTER TABLE trusted_issuers ADD COLUMN subject_claim text NOT NULL DEFAULT 'sub';

-- The organization that says which person the issuer's subject is; null for a person whom the operator has added, who may
-- be in several. What one organization says of a subject is nothing to another one.
ALTER TABLE people
    ADD COLUMN named_in uuid REFERENCES organizations ON DELETE CASCADE,
    DROP CONSTRAINT people_issuer_subject_key;
UPDATE people SET named_in = (
    SELECT organization_id FROM client_organizations WHERE client_organizations.client_id = people.client_id LIMIT 1
) WHERE login IS NULL;
CREATE UNIQUE INDEX people_by_subject
    ON people (issuer, subject, coalesce(named_in, '00000000-0000-0000-0000-000000000000'::uuid));

-- The session in which an upload or a connect link was begun: another session for the same person does not see it, and a
-- link ends with its session.
ALTER TABLE uploads ADD COLUMN session_id uuid;
ALTER TABLE connect_sessions ADD COLUMN session_id uuid;
CREATE INDEX connect_sessions_of_session ON connect_sessions (session_id) WHERE session_id IS NOT NULL;
CREATE OR REPLACE FUNCTION gateway_end_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.expires_at > now() THEN
        UPDATE jobs SET cancel_requested = true, next_attempt_at = CASE WHEN status = 'waiting' THEN now() END
        WHERE organization_id = OLD.organization_id AND session_id = OLD.id
          AND status IN ('queued', 'waiting', 'running') AND NOT cancel_requested;
        UPDATE connect_sessions SET expires_at = now()
        WHERE (id = OLD.link_id OR session_id = OLD.id) AND completed_at IS NULL AND expires_at > now();
        PERFORM pg_notify('gateway', 'client:' || OLD.person_id);
    END IF;
    RETURN NULL;
END
$$;
