-- SCIM 2.0: what providers say of people and groups, and the tokens with which they say it.

-- The token itself is in `tokens`, as a hash; it is that of a client without a secret and without scopes, which the audit log
-- names.
CREATE TABLE scim_tokens (
    client_id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    -- the provider at which its people sign in; null for people without a sign-in
    issuer text,
    -- the attribute that is the person's subject at the issuer
    subject text NOT NULL CHECK (subject IN ('externalId', 'userName')),
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by uuid,
    FOREIGN KEY (client_id, organization_id) REFERENCES client_organizations ON DELETE CASCADE
);
CREATE INDEX scim_tokens_by_organization ON scim_tokens (organization_id);

-- People that a provider has added or changed.
CREATE TABLE provisioned_people (
    client_id uuid PRIMARY KEY REFERENCES people ON DELETE CASCADE,
    organization_id uuid NOT NULL,
    user_name text NOT NULL,
    -- the name without differences of case
    user_key text NOT NULL,
    external_id text,
    -- JSON: the attributes `displayName`, `name` and `emails` as the provider sent them
    attributes jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organization_id, user_key),
    FOREIGN KEY (client_id, organization_id) REFERENCES client_organizations ON DELETE CASCADE
);
CREATE INDEX provisioned_people_by_external_id ON provisioned_people (organization_id, external_id);
-- Others are known to providers by their login, else their email address, else their id.
CREATE INDEX people_by_user_name ON people (lower(coalesce(login, email, client_id::text)));

CALL gateway_isolate('scim_tokens');
CALL gateway_isolate('provisioned_people');
GRANT SELECT, INSERT, UPDATE, DELETE ON scim_tokens, provisioned_people TO gateway_app;

ALTER TABLE groups
    ADD COLUMN id uuid NOT NULL DEFAULT gen_random_uuid(),
    ADD COLUMN external_id text,
    ADD COLUMN created_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now();
CREATE UNIQUE INDEX groups_by_id ON groups (organization_id, id);
-- A provider may rename a group.
ALTER TABLE group_members
    DROP CONSTRAINT group_members_organization_id_group_name_fkey,
    ADD FOREIGN KEY (organization_id, group_name) REFERENCES groups ON UPDATE CASCADE ON DELETE CASCADE;
