"""What runs the jobs of each task."""

from collections.abc import Mapping

from gateway.jobs import tasks
from gateway.jobs.run_context import Work
from gateway.run.services import Services


def work_of(services: Services) -> Mapping[str, Work]:
    """The function that runs the jobs of each task, by the task's name."""
    operations = services.operations
    return {
        tasks.OPERATION.name: operations.runs.run_job,
        tasks.BATCH.name: operations.batches.run_job,
        tasks.EXPORT.name: operations.exports.run_job,
        tasks.SYNCHRONIZE.name: services.copy.synchronization.run_job,
        tasks.DELETE_CONNECTOR.name: operations.deletion.run_delete_connector,
        tasks.DELETE_WORKSPACE.name: operations.deletion.run_delete_workspace,
        tasks.DELETE_PERSON.name: operations.deletion.run_delete_person,
        tasks.DELETE_ORGANIZATION.name: operations.organization_deletion.run,
        tasks.EXPORT_ORGANIZATION.name: services.organization_export.run_job,
        tasks.REPLAY.name: operations.policy_trials.run_replay,
    }
