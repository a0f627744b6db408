"""Job rows as they are read and written: the columns, and the way from a row to a `Job`."""

import json
from typing import Any

from gateway.jobs.model import Job, JobStatus
from gateway.kinds.spec import Effect

COLUMNS = """
    jobs.id, organization_id, client_id, connector_id, workspace_name, task, kind, entity, action, params, shape,
    effect, is_inline, background AS is_background, labels::text AS labels, request_id, find_by, traceparent, status,
    cancel_requested, total, progress, message, error, result, attempt, crashes, jobs.fence, sending_since, state,
    parts, version, jobs.created_at, started_at, finished_at, next_attempt_at, jobs.expires_at
"""

_DOCUMENTS = ("params", "shape", "labels", "state")
_OPTIONAL_DOCUMENTS = ("error", "result")


def job_of(row: Any) -> Job:
    """The job in a row of `COLUMNS`."""
    members = dict(row)
    for name in _DOCUMENTS:
        members[name] = json.loads(members[name])
    for name in _OPTIONAL_DOCUMENTS:
        members[name] = None if members[name] is None else json.loads(members[name])
    members["effect"] = Effect(members["effect"])
    members["status"] = JobStatus(members["status"])
    return Job(**members)
