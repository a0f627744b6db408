-- What was done to something other than a connector: the workspace, the job, the kind of an OAuth app.

ALTER TABLE audit ADD COLUMN target text;
