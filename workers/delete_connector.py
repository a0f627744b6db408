"""The tasks that delete connectors and workspaces."""

from gateway.jobs.removal import DELETE_CONNECTOR, DELETE_WORKSPACE
from gateway.jobs.runner import Task
from gateway.services import Services


def tasks(services: Services) -> dict[str, Task]:
    """The tasks by the name that jobs carry."""
    return {
        DELETE_CONNECTOR: services.deletion.run_delete_connector,
        DELETE_WORKSPACE: services.deletion.run_delete_workspace,
    }
