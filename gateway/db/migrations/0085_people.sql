-- People who sign in by the operator's OpenID Connect provider, and the sign-ins that are under way there.

-- A person is a client of their own, without a secret: scopes, organizations, grants and the audit log know no other.
CREATE TABLE people (
    client_id uuid PRIMARY KEY REFERENCES clients ON DELETE CASCADE,
    -- what the administrator knows them by: the value of the claim that the settings name
    login text NOT NULL UNIQUE,
    -- whom the provider means by it, from the first sign-in on: an address may be given to somebody else one day
    issuer text,
    subject text,
    UNIQUE (issuer, subject)
);

CREATE TABLE provider_sign_ins (
    -- SHA-256 of the state
    state_hash bytea PRIMARY KEY,
    -- nonce, PKCE verifier and the page that goes on, sealed for the browser that began
    sealed text NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX provider_sign_ins_by_expiry ON provider_sign_ins (expires_at);

GRANT SELECT, INSERT, UPDATE, DELETE ON people, provider_sign_ins TO gateway_app;
