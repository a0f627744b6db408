"""The engine in a caller's own process, without server, database and queue; credentials stay in memory."""

from gateway.in_process.connect import connect, connect_sync
from gateway.in_process.connector import LocalConnector, Page
from gateway.in_process.synchronous import SyncLocalConnector

__all__ = ["LocalConnector", "Page", "SyncLocalConnector", "connect", "connect_sync"]
