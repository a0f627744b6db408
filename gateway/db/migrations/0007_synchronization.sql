-- Whose turn it is to synchronize an entity: one job at a time, for as long as that job has not ended.
ALTER TABLE context_entities ADD COLUMN held_by uuid;

-- The jobs of the schedule, which nobody asked for and which are forgotten soon.
CREATE INDEX jobs_scheduled ON jobs (finished_at) WHERE task = 'synchronize' AND client_id IS NULL;
