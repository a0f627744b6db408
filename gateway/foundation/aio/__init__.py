"""Additions to asyncio: single flight, batching, supervised background loops and the end of background tasks."""
