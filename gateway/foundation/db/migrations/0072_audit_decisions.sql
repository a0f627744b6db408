-- What decided about the call of an entry: statements of policies, and the approval by which it went on with those who approved it.

ALTER TABLE audit ADD COLUMN policies text[], ADD COLUMN approval_id uuid, ADD COLUMN approved_by uuid[];
