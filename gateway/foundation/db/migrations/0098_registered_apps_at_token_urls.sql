-- The token URL for which an app was registered: another kind may name the same authorization server, and another token
-- URL, which must not get the app's secret. Null for an app from before; the next consent registers another.
ALTER TABLE oauth_registrations ADD COLUMN token_url text;
