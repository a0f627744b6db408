-- What pruning looks for.
CREATE INDEX agent_codes_by_expiry ON agent_codes (expires_at);
CREATE INDEX agent_refresh_tokens_by_expiry ON agent_refresh_tokens (expires_at);
CREATE INDEX agent_grants_by_creation ON agent_grants (created_at);
CREATE INDEX agent_grants_by_host ON agent_grants (host_id);
CREATE INDEX agent_hosts_by_creation ON agent_hosts (created_at);
