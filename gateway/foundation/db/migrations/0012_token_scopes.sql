-- The scopes that a client asked for with its token (RFC 6749 §3.3); null is all of the client's.

ALTER TABLE tokens ADD COLUMN scopes text[];
