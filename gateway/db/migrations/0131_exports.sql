-- Exports: the pages that a file was made of are deleted once their job has ended.

CREATE INDEX jobs_exported ON jobs (finished_at) WHERE task = 'export' AND parts > 0 AND finished_at IS NOT NULL;

-- What the file looks like that a scheduled list or search is collected into.
ALTER TABLE schedules ADD COLUMN file text CHECK (file IN ('ndjson', 'csv'));
