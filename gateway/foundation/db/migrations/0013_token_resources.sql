-- The only URL for which a client asked for its token (RFC 8707); null is all of the gateway's.

ALTER TABLE tokens ADD COLUMN resource text;
