-- The statements of policies that decided when a job started, for its audit entry: those of the acceptance may have changed,
-- and about the job of a schedule nothing is decided before.

ALTER TABLE jobs ADD COLUMN policies text[];
