-- A job that ends does not wait for the approval of a person who decides at the same moment: that decision waits for the job.
-- An approval that this leaves pending is superseded by `operations.approvals`.
CREATE OR REPLACE FUNCTION gateway_end_approvals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE approvals SET status = 'superseded'
    WHERE id IN (SELECT id FROM approvals WHERE job_id = NEW.id AND status = 'pending' FOR UPDATE SKIP LOCKED);
    RETURN NULL;
END
$$;
