-- What a copy lacks, and which records a sweep has not seen although nothing proves that they were deleted.

ALTER TABLE context_entities
    -- why the copy lacks records; NULL if it lacks none
    ADD COLUMN incomplete text,
    -- records of a large deletion that waits until the next run confirms it
    ADD COLUMN held_deletions integer NOT NULL DEFAULT 0;

-- The sweep that did not see the record; NULL as soon as the record is seen again.
ALTER TABLE context_records ADD COLUMN absent_in bigint;

-- Progress of sweeps that had missed records and did not say which: these sweeps begin again.
UPDATE context_entities SET sweep_cursor = NULL WHERE sweep_cursor LIKE '%"is_partial"%';

-- Changes that nothing reads are deleted by their age.
CREATE INDEX inbound_changes_by_age ON inbound_changes (noticed_at);
