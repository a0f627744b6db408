"""The client of a gateway, asynchronous (`Gateway`) and synchronous (`SyncGateway`).

async with Gateway() as gateway:
    answer = await gateway.execute("support-desk", "tickets", "list", {"per_page": 2})
"""

from gateway.client.connectors import Consent
from gateway.client.downloads import Downloaded
from gateway.client.gateway import Gateway
from gateway.client.jobs import Job
from gateway.client.models import Answer, Connector, Health, JobEvent, JobView, OperationMatch
from gateway.client.retries import RetryPolicy
from gateway.client.synchronous import SyncGateway
from gateway.client.tools import Tool

__all__ = [
    "Answer",
    "Connector",
    "Consent",
    "Downloaded",
    "Gateway",
    "Health",
    "Job",
    "JobEvent",
    "JobView",
    "OperationMatch",
    "RetryPolicy",
    "SyncGateway",
    "Tool",
]
