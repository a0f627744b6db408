"""The tasks of jobs: what each kind of work runs, and what callers may do with its jobs.

A new task is one entry here, and a use case that runs it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.contract.jobs import FINAL, JobStatus
from gateway.jobs.model import OPERATION_TASK, JobSummary
from gateway.jobs.run_context import Work
from gateway.upstream.download import ACTION as DOWNLOAD


@dataclass(frozen=True, slots=True)
class Task:
    """A kind of work."""

    #: stands in the rows of its jobs
    name: str
    #: finds what runs its jobs among the services of a process; their type stands above this package
    run: Callable[[Any], Work]
    #: whether callers may cancel its jobs
    is_cancellable: bool = True
    #: why callers cannot run its jobs again after they ended; None where they can
    not_retried_because: str | None = None
    #: whether its jobs are canceled and emptied when their connector is deleted
    deletes_with_connector: bool = True


#: the error for a retry of a deletion
_REPEATED = "the gateway repeats a deletion until it is done"

OPERATION = Task(OPERATION_TASK, lambda services: services.runs.run_job)
EXPORT = Task("export", lambda services: services.exports.run_job)
SYNCHRONIZE = Task("synchronize", lambda services: services.synchronization.run_job)
# A deletion is repeated by the gateway until it is done, so that callers can neither stop nor repeat it.
DELETE_CONNECTOR = Task(
    "delete_connector",
    lambda services: services.deletion.run_delete_connector,
    is_cancellable=False,
    not_retried_because=_REPEATED,
    deletes_with_connector=False,
)
DELETE_WORKSPACE = Task(
    "delete_workspace",
    lambda services: services.deletion.run_delete_workspace,
    is_cancellable=False,
    not_retried_because=_REPEATED,
    deletes_with_connector=False,
)
# Run again as a whole it would repeat the operations that succeeded; callers send those again that did not.
BATCH = Task(
    "batch",
    lambda services: services.batches.run_job,
    not_retried_because="send those of its operations again that its result shows as not succeeded",
)
#: all tasks by name
TASKS: Mapping[str, Task] = {
    task.name: task for task in (OPERATION, BATCH, EXPORT, SYNCHRONIZE, DELETE_CONNECTOR, DELETE_WORKSPACE)
}


def is_retryable(job: JobSummary) -> bool:
    """Whether callers may run the job again: it ended without success, and its task is known and allows it."""
    task = TASKS.get(job.task)
    return task is not None and task.not_retried_because is None and job.status in FINAL - {JobStatus.SUCCEEDED}


def has_file(job: JobSummary) -> bool:
    """Whether the job's result is a stored file: a download's, or an export's."""
    return job.action == DOWNLOAD or job.task == EXPORT.name


def sql_names(tasks: Iterable[Task]) -> str:
    """The names of tasks as SQL literals, for `IN`."""
    return ", ".join(f"'{task.name}'" for task in tasks)
