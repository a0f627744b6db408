-- A consent belongs to the browser that went to the application with it: SHA-256 of its cookie.
ALTER TABLE oauth_flows ADD COLUMN browser_hash bytea;
