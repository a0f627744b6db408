-- Roles, organizations, and who acts for them: clients with their tokens, people, console sessions.

-- Front ends and workers work as this role. It owns nothing and row-level security applies to it.
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

-- Health checks of a front end, whose role may be another than the one that migrates, compare the applied migrations.
GRANT SELECT ON migrations TO gateway_app;

-- Row-level security of a table with an organization_id: a session sees one organization's rows, all ('*'), or none when
-- the setting is missing. The setting is read once for a statement instead of once for each row, so that indexes which
-- begin with the organization serve it. The planner takes CASE for true half of the time, and an equality for a rare
-- case, for which it would sort whole tables.
CREATE PROCEDURE gateway_isolate(name text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format($policy$
        CREATE POLICY tenant ON %I USING (
            CASE WHEN (SELECT current_setting('gateway.tenant', true) = '*') THEN true
            ELSE organization_id = (SELECT CASE WHEN current_setting('gateway.tenant', true) <> '*'
                THEN NULLIF(current_setting('gateway.tenant', true), '')::uuid END) END)
    $policy$, name);
END
$$;

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
    -- the only workspaces that the client may see; null is all
    workspaces text[],
    created_at timestamptz NOT NULL DEFAULT now(),
    disabled_at timestamptz
);

CREATE TABLE client_organizations (
    client_id uuid NOT NULL REFERENCES clients ON DELETE CASCADE,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    PRIMARY KEY (client_id, organization_id)
);
CREATE INDEX client_organizations_by_organization ON client_organizations (organization_id);

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
    -- Set when deletion began: from then on callers do not see the workspace and no connector is created in it. Its name
    -- is free again at once. The name of the column differs from that of connectors, because both stand in joins.
    deletion_began_at timestamptz,
    -- the job that removes it; one that ended without having done so is replaced
    deletion_job uuid,
    UNIQUE (organization_id, name)
);
CREATE INDEX workspaces_deleted ON workspaces (deletion_began_at) WHERE deletion_began_at IS NOT NULL;

-- People who sign in through the operator's OpenID provider. A person is a client without a secret, so that scopes,
-- organizations, grants and the audit log know one kind of actor.
CREATE TABLE people (
    client_id uuid PRIMARY KEY REFERENCES clients ON DELETE CASCADE,
    -- the value of the claim that the settings name
    login text NOT NULL UNIQUE,
    -- the provider's identifiers, bound at the first sign-in: an address may be given to another person one day
    issuer text,
    subject text,
    UNIQUE (issuer, subject)
);

CREATE TABLE provider_sign_ins (
    -- SHA-256 of the state
    state_hash bytea PRIMARY KEY,
    -- nonce, PKCE verifier and the next page, sealed for the browser that began
    sealed text NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX provider_sign_ins_by_expiry ON provider_sign_ins (expires_at);

CREATE TABLE console_sessions (
    -- SHA-256 of the cookie
    token_hash bytea PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    client_id uuid NOT NULL REFERENCES clients ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    seen_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX console_sessions_by_time ON console_sessions (seen_at);

CALL gateway_isolate('workspaces');
CALL gateway_isolate('console_sessions');
GRANT SELECT, INSERT, UPDATE, DELETE
    ON organizations, clients, client_organizations, tokens, workspaces, people, provider_sign_ins, console_sessions
    TO gateway_app;

-- Processes remember clients; a change is announced, so that they read it again.
CREATE FUNCTION gateway_tell_client() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('gateway', 'client:' || NEW.id);
    RETURN NEW;
END
$$;
CREATE TRIGGER tell AFTER UPDATE ON clients FOR EACH ROW EXECUTE FUNCTION gateway_tell_client();
