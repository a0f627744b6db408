"""The client of a gateway, asynchronous (`Gateway`) and synchronous (`SyncGateway`).

async with Gateway() as gateway:
    answer = await gateway.execute("support-desk", "tickets", "list", {"per_page": 2})
"""

from gateway.client.connectors import Consent
from gateway.client.gateway import Gateway
from gateway.client.jobs import Job
from gateway.client.retries import RetryPolicy
from gateway.client.synchronous import SyncConnectors, SyncConsent, SyncGateway, SyncJob, SyncTool
from gateway.client.tools import Tool
from gateway.contract.answers import Answer
from gateway.contract.connectors import Connector, Health
from gateway.contract.events import EventView
from gateway.contract.jobs import JobEvent, JobView
from gateway.contract.kinds import OperationMatch, OperationMatches
from gateway.foundation.saving.save import Downloaded

__all__ = [
    "Answer",
    "Connector",
    "Consent",
    "Downloaded",
    "EventView",
    "Gateway",
    "Health",
    "Job",
    "JobEvent",
    "JobView",
    "OperationMatch",
    "OperationMatches",
    "RetryPolicy",
    "SyncConnectors",
    "SyncConsent",
    "SyncGateway",
    "SyncJob",
    "SyncTool",
    "Tool",
]
