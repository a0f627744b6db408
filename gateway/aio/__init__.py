"""What asyncio lacks: single flight, batching, and the end of background tasks."""
