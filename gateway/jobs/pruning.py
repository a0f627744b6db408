"""Deletes expired rows: jobs with their results, idempotency keys, tokens, workers, pauses."""

from gateway.foundation.db.pool import Database
from gateway.foundation.db.pruning import prune
from gateway.jobs.tasks import SYNCHRONIZE

# The row stays for a day, so that the error says that the result has expired and not that there is no such job.
_EXPIRED_RESULTS = """
    WITH expired AS (
        SELECT id FROM jobs WHERE expires_at < now() AND (result IS NOT NULL OR parts > 0)
        ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
    ), emptied AS (
        DELETE FROM job_results USING expired WHERE job_id = expired.id
    )
    UPDATE jobs SET result = NULL, parts = 0 FROM expired WHERE jobs.id = expired.id
"""
_OLD_JOBS = """
    WITH old AS (
        SELECT id FROM jobs WHERE expires_at < now() - interval '1 day'
        ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM jobs USING old WHERE jobs.id = old.id
"""
# Scheduled synchronizations are frequent and have no caller: they stay for an hour.
_OLD_SCHEDULED_JOBS = f"""
    WITH old AS (
        SELECT id FROM jobs
        WHERE task = '{SYNCHRONIZE.name}' AND client_id IS NULL AND finished_at < now() - interval '1 hour'
        ORDER BY finished_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM jobs USING old WHERE jobs.id = old.id
"""
# An interrupted request leaves operations without a job. The operations of a job are deleted when its result expires.
_BATCH_INPUTS = """
    WITH unused AS (
        SELECT job_id, first_index FROM batch_inputs
        WHERE stored_at < now() - interval '1 hour' AND NOT EXISTS (
            SELECT FROM jobs WHERE jobs.id = batch_inputs.job_id AND (expires_at IS NULL OR expires_at > now()))
        ORDER BY stored_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM batch_inputs AS inputs USING unused
    WHERE (inputs.job_id, inputs.first_index) = (unused.job_id, unused.first_index)
"""
_EXPIRED_KEYS = """
    WITH expired AS (
        SELECT organization_id, client_id, connector_id, key FROM idempotency_keys WHERE expires_at < now()
        ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM idempotency_keys AS keys USING expired
    WHERE (keys.organization_id, keys.client_id, keys.connector_id, keys.key)
        = (expired.organization_id, expired.client_id, expired.connector_id, expired.key)
"""
# Expired tokens stay for two hours: a caller that follows redirects to its result sends the token that it began with.
_EXPIRED_TOKENS = """
    WITH expired AS (
        SELECT hash FROM tokens WHERE expires_at < now() - interval '2 hours'
        ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM tokens USING expired WHERE tokens.hash = expired.hash
"""
_EXPIRED_SESSIONS = """
    WITH expired AS (
        SELECT id FROM person_sessions WHERE expires_at < now() - interval '7 days'
        ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM person_sessions USING expired WHERE person_sessions.id = expired.id
"""
_LOST_WORKERS = """
    WITH gone AS (
        SELECT id FROM workers WHERE seen_at < now() - interval '1 hour' LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM workers USING gone WHERE workers.id = gone.id
"""
_ENDED_HOLDS = """
    WITH ended AS (
        SELECT connector_id FROM connector_holds WHERE held_until < now() LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM connector_holds USING ended WHERE connector_holds.connector_id = ended.connector_id
"""
_ENDED_PAUSES = """
    WITH ended AS (SELECT scope_id FROM rate_pauses WHERE paused_until < now() LIMIT $1 FOR UPDATE SKIP LOCKED)
    DELETE FROM rate_pauses USING ended WHERE rate_pauses.scope_id = ended.scope_id
"""
_STATEMENTS = (
    _EXPIRED_RESULTS,
    _OLD_JOBS,
    _OLD_SCHEDULED_JOBS,
    _BATCH_INPUTS,
    _EXPIRED_KEYS,
    _EXPIRED_TOKENS,
    _EXPIRED_SESSIONS,
    _LOST_WORKERS,
    _ENDED_HOLDS,
    _ENDED_PAUSES,
)


async def prune_jobs(database: Database) -> int:
    """Delete all expired rows; returns their number."""
    return sum([await prune(database, statement) for statement in _STATEMENTS])
