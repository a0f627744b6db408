-- For how long applications asked to be left alone: for processes that start later, and while Redis is away.
CREATE TABLE rate_pauses (
    scope_id text PRIMARY KEY,
    paused_until timestamptz NOT NULL
);
GRANT SELECT, INSERT, UPDATE, DELETE ON rate_pauses TO gateway_app;
