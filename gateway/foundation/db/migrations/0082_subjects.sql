-- The claim by which an issuer names people, and subjects that are unique within an organization.

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
