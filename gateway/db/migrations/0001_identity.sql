-- Organizations, the clients that may act for them, and the tokens that prove it.

-- The gateway works as this role, which owns nothing and is held to row-level security.
DO $$
BEGIN
    CREATE ROLE gateway_app NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;
END
$$;
DO $$
BEGIN
    EXECUTE format('GRANT gateway_app TO %I', current_user);
EXCEPTION WHEN OTHERS THEN
    -- a superuser may become any role without being a member
    NULL;
END
$$;

-- Whose rows a session may see: one organization's, all ('*'), or, when nobody said, none.
CREATE FUNCTION gateway_sees(organization_id uuid) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN current_setting('gateway.tenant', true) = '*'
        OR organization_id::text = current_setting('gateway.tenant', true);

CREATE TABLE organizations (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    disabled_at timestamptz
);

CREATE TABLE clients (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    -- two live secrets at most, so that one can be replaced while the other works
    secret_hashes bytea[] NOT NULL,
    scopes text[] NOT NULL DEFAULT '{read,write,admin}',
    redirect_urls text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    disabled_at timestamptz
);

CREATE TABLE client_organizations (
    client_id uuid NOT NULL REFERENCES clients ON DELETE CASCADE,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    PRIMARY KEY (client_id, organization_id)
);

CREATE TABLE tokens (
    hash bytea PRIMARY KEY,
    client_id uuid NOT NULL REFERENCES clients ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);
CREATE INDEX tokens_by_expiry ON tokens (expires_at);

CREATE TABLE workspaces (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organization_id, name)
);
ALTER TABLE workspaces ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON workspaces USING (gateway_sees(organization_id));

GRANT SELECT, INSERT, UPDATE, DELETE ON organizations, clients, client_organizations, tokens, workspaces TO gateway_app;

-- What processes keep in memory is dropped as soon as it changes.
CREATE FUNCTION gateway_tell_client() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('gateway', 'client:' || NEW.id);
    RETURN NEW;
END
$$;
CREATE TRIGGER tell AFTER UPDATE ON clients FOR EACH ROW EXECUTE FUNCTION gateway_tell_client();
