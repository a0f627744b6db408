"""The tasks of jobs, and what callers may do with the jobs of each.

A new task is an entry here, its use case, and the entry in `gateway.run.work` that names the use case.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gateway.contract.jobs import FINAL, JobStatus
from gateway.jobs.model import EXPORT_TASK, OPERATION_TASK, JobSummary
from gateway.upstream.download import ACTION as DOWNLOAD


@dataclass(frozen=True, slots=True)
class Task:
    """A kind of work."""

    #: stands in the rows of its jobs
    name: str
    #: whether callers may cancel its jobs
    is_cancellable: bool = True
    #: why callers cannot run its jobs again after they ended; None if they can
    not_retried_because: str | None = None
    #: whether its jobs are canceled and emptied when their connector is deleted
    deletes_with_connector: bool = True


#: the error for a retry of a deletion
_REPEATED = "the gateway repeats a deletion until it is done"

OPERATION = Task(OPERATION_TASK)
EXPORT = Task(EXPORT_TASK)
SYNCHRONIZE = Task("synchronize")
# The gateway repeats a deletion until it is done, so callers can neither cancel nor retry it.
DELETE_CONNECTOR = Task(
    "delete_connector",
    is_cancellable=False,
    not_retried_because=_REPEATED,
    deletes_with_connector=False,
)
DELETE_WORKSPACE = Task(
    "delete_workspace",
    is_cancellable=False,
    not_retried_because=_REPEATED,
    deletes_with_connector=False,
)
DELETE_PERSON = Task(
    "delete_person",
    is_cancellable=False,
    not_retried_because=_REPEATED,
    deletes_with_connector=False,
)
DELETE_ORGANIZATION = Task(
    "delete_organization",
    is_cancellable=False,
    not_retried_because=_REPEATED,
    deletes_with_connector=False,
)
# Writes are refused while it runs, and after it has succeeded.
EXPORT_ORGANIZATION = Task(
    "export_organization",
    is_cancellable=False,
    not_retried_because="ask for another export",
    deletes_with_connector=False,
)
# A second run of the whole batch would repeat the operations that succeeded.
BATCH = Task(
    "batch",
    not_retried_because="send the operations again that did not succeed; its result shows which",
)
REPLAY = Task("replay_policies")
#: all tasks by name
TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        OPERATION,
        BATCH,
        EXPORT,
        SYNCHRONIZE,
        DELETE_CONNECTOR,
        DELETE_WORKSPACE,
        DELETE_PERSON,
        DELETE_ORGANIZATION,
        EXPORT_ORGANIZATION,
        REPLAY,
    )
}


def retry_refusal(job: JobSummary) -> str | None:
    """Why callers cannot run the job again; None if they can: it ended without success, and its task allows it."""
    if job.status not in FINAL - {JobStatus.SUCCEEDED}:
        return f"the job is {job.status}; only a failed, canceled or unknown one can be retried"
    reason = TASKS[job.task].not_retried_because if job.task in TASKS else "its task is not known here"
    return None if reason is None else f"a {job.task} job cannot be retried on request; {reason}"


def is_safe_to_retry(job: JobSummary) -> bool:
    """Whether a job that ended without success may run again: nothing was done, or a repetition does no harm."""
    return bool((job.error or {}).get("safe_to_retry", job.status is not JobStatus.UNKNOWN))


def cancel_refusal(job: JobSummary) -> str:
    """Why callers cannot cancel the job: it has ended, or its task does not allow it."""
    return f"the job has ended: it is {job.status}" if job.is_done else f"a {job.task} job cannot be canceled"


def has_file(job: JobSummary) -> bool:
    """Whether the job's result is a stored file: a download's, or an export's."""
    return job.action == DOWNLOAD or job.task in (EXPORT.name, EXPORT_ORGANIZATION.name)


def sql_names(tasks: Iterable[Task]) -> str:
    """The names of tasks as SQL literals, for `IN`."""
    return ", ".join(f"'{task.name}'" for task in tasks)
