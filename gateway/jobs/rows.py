"""Job rows as they are read and written: the columns, and the way from a row to a `StoredJob`."""

import json
from typing import Any

from gateway.jobs.model import JobStatus, JobSummary, NewJob, StoredJob
from gateway.jobs.sealing import JobKey, JobSealing
from gateway.kinds.spec import Effect

# What may be large is not in it: params, shape, state and result.
SUMMARY_COLUMNS = """
    jobs.id, organization_id, client_id, connector_id, workspace_name, task, kind, entity, action, effect, is_inline,
    background AS is_background, labels::text AS labels, request_id, find_by, traceparent, status, cancel_requested,
    total, progress, message, error, result IS NOT NULL AS is_stored, attempt, crashes, jobs.fence,
    sending_since, parts, version, jobs.created_at,
    started_at, finished_at, next_attempt_at, jobs.expires_at, key_id, wrapped_key
"""
COLUMNS = f"{SUMMARY_COLUMNS}, params, shape, state"


def summary_of(row: Any) -> JobSummary:
    """The job in a row of `SUMMARY_COLUMNS`."""
    return JobSummary(**_members(row))


def job_of(row: Any, sealing: JobSealing) -> StoredJob:
    """The job in a row of `COLUMNS`, opened."""
    members = _members(row)
    key = JobKey(members["organization_id"], members["id"], members["key_id"], members["wrapped_key"])
    for name in ("params", "shape", "state"):
        members[name] = json.loads(sealing.open(key, name, members[name]))
    return StoredJob(**members)


def accepted_job(row: Any, new: NewJob) -> StoredJob:
    """The job in a row of `SUMMARY_COLUMNS` that was just written, with what it was written of."""
    return StoredJob(**_members(row), params=dict(new.params), shape=dict(new.shape), state={})


def _members(row: Any) -> dict[str, Any]:
    members = dict(row)
    members["labels"] = json.loads(members["labels"])
    members["error"] = None if members["error"] is None else json.loads(members["error"])
    members["effect"] = Effect(members["effect"])
    members["status"] = JobStatus(members["status"])
    return members
