-- Budgets: how much a client, a person, a workspace or the whole organization may use in a period.

CREATE TABLE budgets (
    organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name text NOT NULL,
    -- the client or the person whose calls count; null for those of all
    client_id uuid REFERENCES clients ON DELETE CASCADE,
    workspace_name text,
    per text NOT NULL CHECK (per IN ('hour', 'day', 'month')),
    calls bigint,
    writes bigint,
    records bigint,
    -- the operation, its param and the sum that the param may reach
    sum_operation text,
    sum_param text,
    sum_at_most numeric,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by uuid,
    PRIMARY KEY (organization_id, name)
);

-- What is spent of a budget in the period that began at `since`; a later period begins with nothing.
CREATE TABLE budget_spending (
    organization_id uuid NOT NULL,
    name text NOT NULL,
    since timestamptz NOT NULL,
    calls bigint NOT NULL,
    writes bigint NOT NULL,
    records bigint NOT NULL,
    sum numeric NOT NULL,
    PRIMARY KEY (organization_id, name),
    FOREIGN KEY (organization_id, name) REFERENCES budgets ON DELETE CASCADE
) WITH (fillfactor = 50);

CALL gateway_isolate('budgets');
CALL gateway_isolate('budget_spending');
GRANT SELECT, INSERT, UPDATE, DELETE ON budgets, budget_spending TO gateway_app;

-- Every process caches the budgets of an organization.
CREATE FUNCTION gateway_tell_budget() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('gateway', 'budget:' || COALESCE(NEW.organization_id, OLD.organization_id));
    RETURN NULL;
END $$;
CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON budgets
    FOR EACH ROW EXECUTE FUNCTION gateway_tell_budget();
