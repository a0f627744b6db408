"""What any service has: asyncio, telemetry, PostgreSQL, encryption, files on disk."""
