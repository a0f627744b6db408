-- Params, state and results of a job may be sealed with a data key of its own; NULL where they are plain.

ALTER TABLE jobs ADD COLUMN key_id text, ADD COLUMN wrapped_key bytea;
