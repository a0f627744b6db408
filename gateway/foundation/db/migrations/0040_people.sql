-- People of an organization that its administrators add, and their groups.

ALTER TABLE people
    -- null for a person whom only an issuer's or a client's identifier names
    ALTER COLUMN login DROP NOT NULL,
    ADD COLUMN email text,
    ADD COLUMN name text,
    -- the client in whose namespace the subject is, for people without an issuer
    ADD COLUMN namespace_id uuid REFERENCES clients ON DELETE CASCADE,
    ADD COLUMN last_seen_at timestamptz,
    ADD CHECK (issuer IS NULL OR namespace_id IS NULL),
    ADD UNIQUE (namespace_id, subject);

CREATE TABLE groups (
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name text NOT NULL,
    -- the workspaces that its members may see beside their own; null is all
    workspaces text[],
    -- the scopes that its members have beside their own
    scopes text[] NOT NULL,
    PRIMARY KEY (organization_id, name)
);

CREATE TABLE group_members (
    organization_id uuid NOT NULL,
    group_name text NOT NULL,
    client_id uuid NOT NULL,
    PRIMARY KEY (organization_id, group_name, client_id),
    FOREIGN KEY (organization_id, group_name) REFERENCES groups ON DELETE CASCADE,
    FOREIGN KEY (client_id, organization_id) REFERENCES client_organizations ON DELETE CASCADE
);
-- A client's groups are read whenever a process reads the client.
CREATE INDEX group_members_by_client ON group_members (client_id);

CALL gateway_isolate('groups');
CALL gateway_isolate('group_members');
GRANT SELECT, INSERT, UPDATE, DELETE ON groups, group_members TO gateway_app;

-- The person whose account the connector is; null for a shared one. Without a foreign key: the job that deletes a
-- person's connectors runs after the person is gone.
ALTER TABLE connectors ADD COLUMN owner_id uuid;
CREATE INDEX connectors_by_owner ON connectors (owner_id) WHERE owner_id IS NOT NULL;
