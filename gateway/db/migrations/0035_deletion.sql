-- Deletion that cannot be lost: a mark and the job that carries it out, in one transaction.

-- The job that is to remove it. One that ended without having done so is replaced.
ALTER TABLE connectors ADD COLUMN deletion_job uuid;
-- Set when deletion began: from then on it does not exist for callers, and no connector is made in it any more. Its name
-- is given up with the mark, so that it can be used anew at once. The column is named apart from that of connectors,
-- which older versions read unqualified in joins.
ALTER TABLE workspaces ADD COLUMN deletion_began_at timestamptz;
ALTER TABLE workspaces ADD COLUMN deletion_job uuid;

CREATE INDEX connectors_deleted ON connectors (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX workspaces_deleted ON workspaces (deletion_began_at) WHERE deletion_began_at IS NOT NULL;
