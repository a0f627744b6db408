-- Whose turn it is to synchronize an entity: one job at a time, for as long as that job has not ended.
ALTER TABLE context_entities ADD COLUMN held_by uuid;
